"""Renders chat templates as transformers does. Reads {"templates": {name: source}, "cases": [...]} and writes, for each template, a list
with {"text": ...} or {"error": ..., "raised": true if the template itself raised it} for each case. The time is always 2026-03-05 14:07:09."""

import datetime
import json
import sys

import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template


def strftime_now(form):
    return datetime.datetime(2026, 3, 5, 14, 7, 9).strftime(form)


def render(compiled, case):
    try:
        return {"text": compiled.render(**case, strftime_now=strftime_now)}
    except jinja2.exceptions.TemplateError as error:
        return {"error": f"{type(error).__name__}: {error}", "raised": type(error) is jinja2.exceptions.TemplateError}
    except Exception as error:  # what a template does wrong may be of any type
        return {"error": f"{type(error).__name__}: {error}", "raised": False}


def main():
    asked = json.load(sys.stdin)
    results = {}
    for name, source in asked["templates"].items():
        try:
            compiled = _compile_jinja_template(source)
        except Exception as error:
            results[name] = {"error": f"{type(error).__name__}: {error}"}
            continue
        results[name] = [render(compiled, case) for case in asked["cases"]]
    json.dump(results, sys.stdout)


main()
