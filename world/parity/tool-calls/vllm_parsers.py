"""What vLLM's own tool and reasoning parsers read in texts. Reads {"families": {name: {"tool", "reasoning", "tokens"}}, "tools", "cases"} on
standard input and prints one result for each case. Only the packages vllm.tool_parsers, vllm.reasoning and vllm.parser are imported; the
engine, torch and the server around them are replaced by the few data types that parsers use, so this takes seconds instead of a minute."""

import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import os
import sys
import types
import uuid

REAL = ("vllm.tool_parsers", "vllm.reasoning", "vllm.parser", "vllm.entrypoints.openai.parser.harmony_utils")
REPLACED = ("vllm.", "xgrammar", "openai", "transformers", "prometheus_client", "mistral_common")


class Flexible(type):
    """A class that may stand in annotations, in isinstance and as a base."""

    def __getitem__(cls, _):
        return cls

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Record(metaclass=Flexible):
    defaults = {}

    def __init__(self, *_, **fields):
        for name, value in {**self.defaults, **fields}.items():
            setattr(self, name, value() if value in (list, dict) else value)

    def model_dump(self, **_):
        return {name: value.model_dump() if isinstance(value, Record) else value for name, value in vars(self).items()}


def record(kind, /, **defaults):
    return Flexible(kind, (Record,), {"defaults": defaults})


class Quiet:
    def __getattr__(self, _):
        return lambda *_a, **_k: None


def new_id(*_, **__):
    return f"call-{uuid.uuid4().hex}"


KNOWN = {
    "vllm.entrypoints.generate.base.protocol": {
        "FunctionCall": record("FunctionCall", id=None, name=None, arguments=None),
        "ToolCall": record("ToolCall", id=None, type="function", function=None),
        "DeltaFunctionCall": record("DeltaFunctionCall", name=None, arguments=None),
        "DeltaToolCall": record("DeltaToolCall", id=None, type=None, index=0, function=None),
        "DeltaMessage": record("DeltaMessage", role=None, content=None, reasoning=None, tool_calls=list),
        "ExtractedToolCallInformation": record("ExtractedToolCallInformation", tools_called=False, tool_calls=list, content=None),
        "FunctionDefinition": record("FunctionDefinition", name=None, description=None, parameters=None, strict=None),
    },
    "vllm.entrypoints.openai.chat_completion.protocol": {
        "ChatCompletionRequest": record(
            "ChatCompletionRequest",
            messages=list,
            tools=None,
            tool_choice="auto",
            chat_template_kwargs=None,
            skip_special_tokens=False,
            structured_outputs=None,
            response_format=None,
            include_reasoning=True,
            parallel_tool_calls=True,
        ),
        "ChatCompletionToolsParam": record("ChatCompletionToolsParam", type="function", function=None),
    },
    "vllm.envs": {"VLLM_ENFORCE_STRICT_TOOL_CALLING": False, "VLLM_TOOL_PARSE_REGEX_TIMEOUT_SECONDS": 20},
    "vllm.logger": {"init_logger": lambda _: Quiet()},
    "vllm.utils": {"random_uuid": lambda: uuid.uuid4().hex},
    "vllm.utils.mistral": {"is_mistral_tokenizer": lambda _: False},
    "vllm.utils.collection_utils": {"is_list_of": lambda value, kind, **_: isinstance(value, list) and all(isinstance(one, kind) for one in value)},
    "vllm.renderers.chat_utils": {"make_tool_call_id": new_id, "get_tool_call_id_type": lambda *_: "random"},
    "vllm.exceptions": {"VLLMValidationError": type("VLLMValidationError", (ValueError,), {})},
    "mistral_common.tokens.tokenizers.base": {
        "SpecialTokens": types.SimpleNamespace(
            tool_calls=types.SimpleNamespace(value="[TOOL_CALLS]"),
            args=types.SimpleNamespace(value="[ARGS]"),
            call_id=types.SimpleNamespace(value="[CALL_ID]"),
            begin_think=types.SimpleNamespace(value="[THINK]"),
            end_think=types.SimpleNamespace(value="[/THINK]"),
        )
    },
}


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.startswith((*REAL, "openai_harmony")) or not name.startswith(REPLACED):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        inside = [part for part in spec.name.split(".")[1:]] if spec.name.startswith("vllm.") else None
        module.__path__ = [os.path.join(sys.modules["vllm"].__path__[0], *inside)] if inside else []
        module.__getattr__ = functools.partial(self.make, module)
        vars(module).update(KNOWN.get(spec.name, {}))
        return module

    def exec_module(self, module):
        pass

    def make(self, module, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = record(name) if name[0].isupper() else functools.lru_cache(lambda *_a, **_k: None)
        setattr(module, name, made)
        return made


def open_vllm():
    spec = importlib.util.find_spec("vllm")
    package = types.ModuleType("vllm")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["vllm"] = package
    sys.meta_path.insert(0, StandIns())


class OneTokenizer:
    """The tokenizer of a small model, with a family's control tokens added to it."""

    def __init__(self, path, family):
        from tokenizers import AddedToken, Tokenizer

        tokens = family["tokens"]
        self.inner = Tokenizer.from_file(path)
        self.inner.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in tokens])
        self.all_special_tokens = list(tokens)
        self.all_special_ids = [self.inner.token_to_id(token) for token in tokens]
        self.init_kwargs = family.get("config") or {}

    @functools.cached_property
    def vocab(self):
        return self.inner.get_vocab(with_added_tokens=True)

    def get_vocab(self):
        return self.vocab

    def encode(self, text, add_special_tokens=False, **_):
        return self.inner.encode(text, add_special_tokens=False).ids

    def decode(self, ids, skip_special_tokens=False, **_):
        return self.inner.decode([ids] if isinstance(ids, int) else list(ids), skip_special_tokens=skip_special_tokens)

    def convert_tokens_to_ids(self, tokens):
        return self.inner.token_to_id(tokens) if isinstance(tokens, str) else [self.inner.token_to_id(token) for token in tokens]


class HarmonyTokenizer:
    """The tokenizer of gpt-oss, whose parser reads token ids."""

    def __init__(self):
        from vllm.entrypoints.openai.parser.harmony_utils import get_encoding

        self.inner = get_encoding()

    def get_vocab(self):
        return {token: self.encode(token)[0] for token in ("<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|call|>", "<|return|>")}

    def encode(self, text, **_):
        return self.inner.encode(text, allowed_special="all")

    def decode(self, ids, **_):
        return self.inner.decode([ids] if isinstance(ids, int) else list(ids))


@functools.cache
def open_tokenizer(path, family):
    family = json.loads(family)
    return HarmonyTokenizer() if family["tool"] == "openai" else OneTokenizer(path, family)


def read_case(parser_class, tokenizer, tools, text, kwargs):
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    parser = parser_class(tokenizer, tools, chat_template_kwargs=kwargs)
    request = ChatCompletionRequest(tools=tools, chat_template_kwargs=kwargs)
    reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=tokenizer.encode(text))
    return {
        "reasoning": reasoning or "",
        "content": content or "",
        "calls": [{"name": call.name, "arguments": call.arguments} for call in calls or []],
    }


def main():
    given = json.load(sys.stdin)
    sys.path.append(given["packages"])
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = given["vocabulary"]
    logging.disable(logging.CRITICAL)
    open_vllm()
    from vllm.entrypoints.generate.base.protocol import FunctionDefinition
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionToolsParam
    from vllm.parser.parser_manager import ParserManager

    tools = [ChatCompletionToolsParam(function=FunctionDefinition(**tool)) for tool in given["tools"]]
    results = []
    for case in given["cases"]:
        try:
            family = given["families"][case["family"]]
            tokenizer = open_tokenizer(given["tokenizer"], json.dumps(family))
            reasoning = family.get("reasoning") if case["thinks"] else None
            with contextlib.redirect_stdout(sys.stderr):
                parser = ParserManager.get_parser(family["tool"], reasoning, enable_auto_tools=True, is_harmony=family["tool"] == "openai")
                results.append(read_case(parser, tokenizer, tools, case["text"], family.get("kwargs")))
        except Exception as error:
            results.append({"error": f"{type(error).__name__}: {error}"[:300]})
    print(json.dumps(results))


main()
