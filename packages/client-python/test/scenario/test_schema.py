"""Types of tasks and tools as JSON Schema, and values of these types from JSON."""

from __future__ import annotations

import unittest
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, TypedDict

from millrace.scenario import Rollout, tool
from millrace.scenario.schema import from_json, to_schema
from millrace.scenario.tool import definition_of


@dataclass
class Point:
    x: int
    y: Annotated[float, "Up."] = 0.0


@dataclass
class Task:
    kind: Literal["a", "b"]
    points: list[Point]
    names: dict[str, str] = field(default_factory=dict)
    best: Optional[Point] = None
    more: Any = None


class Row(TypedDict, total=False):
    text: str


class SchemaTest(unittest.TestCase):
    def test_a_dataclass_is_an_object_with_exactly_its_fields(self) -> None:
        schema = to_schema(Task, "Task")
        self.assertEqual(schema["required"], ["kind", "points"])
        self.assertEqual(schema["additionalProperties"], False)
        self.assertEqual(schema["properties"]["kind"], {"enum": ["a", "b"]})
        point = schema["properties"]["points"]["items"]
        self.assertEqual(point["properties"]["y"], {"type": "number", "description": "Up."})
        self.assertEqual(schema["properties"]["best"]["anyOf"][1], {"type": "null"})

    def test_a_typed_dict_is_an_object(self) -> None:
        self.assertEqual(to_schema(Row, "Row")["required"], [])

    def test_what_json_schema_cannot_express_is_refused_by_name(self) -> None:
        with self.assertRaisesRegex(TypeError, r"Task\.x has the type"):
            to_schema(dataclass(type("Task", (), {"__annotations__": {"x": complex}})), "Task")

    def test_json_becomes_nested_dataclasses(self) -> None:
        task = from_json(Task, {"kind": "a", "points": [{"x": 1}], "best": {"x": 2, "y": 3}})
        self.assertEqual((task.points, task.best, task.names), ([Point(1)], Point(2, 3.0), {}))


class ToolTest(unittest.TestCase):
    def test_a_tool_is_its_docstring_and_its_parameters(self) -> None:
        @tool
        def look(rollout: Rollout, where: str, depth: int = 1) -> str:
            """Looks around."""
            return f"{rollout} {where} {depth}"

        found = definition_of(look)
        self.assertEqual((found.name, found.description), ("look", "Looks around."))
        self.assertEqual((sorted(found.parameters["properties"]), found.parameters["required"]), (["depth", "where"], ["where"]))
        self.assertEqual(found.call("r", {"where": "up"}), "r up 1")

    def test_what_a_model_cannot_call_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "has no docstring"):
            tool(lambda: "")
        with self.assertRaisesRegex(TypeError, "not a tool"):
            definition_of(len)

        def untyped(x) -> str:  # type: ignore[no-untyped-def]
            """Does."""
            return str(x)

        with self.assertRaisesRegex(TypeError, "parameter x of the tool untyped has no type hint"):
            tool(untyped)


if __name__ == "__main__":
    unittest.main()
