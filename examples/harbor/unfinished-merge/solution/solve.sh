#!/bin/bash
sed -i -e '/^<<<<<<</,/^=======/d' -e '/^>>>>>>>/d' settings.conf
