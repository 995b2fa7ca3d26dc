#!/bin/sh
echo "hello $name"
