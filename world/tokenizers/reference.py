"""What Rust's tokenizers (or, for tekken.json, mistral-common) make of texts. Takes the file of a tokenizer; reads {"texts", "control",
"ids"} from standard input and writes the ids of each text, with control tokens recognised and without, the text of each list in "ids",
and the processor time. With --tables it writes the characters of each Unicode class and normal form instead."""

import json
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Regex, Tokenizer, normalizers  # noqa: E402

CLASSES = ["L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "Nd", "P", "S", "Han", "White_Space"]


def load(path, control):
    with open(path, encoding="utf-8") as file:
        described = json.load(file)
    described.update(truncation=None, padding=None, post_processor=None)
    whole = Tokenizer.from_str(json.dumps(described))
    described["added_tokens"] = [one for one in described["added_tokens"] if one["content"] not in control]
    return whole, Tokenizer.from_str(json.dumps(described))


def compare(path):
    asked = json.load(sys.stdin)
    if "tekken" in os.path.basename(path):
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        tekken = Tekkenizer.from_file(path)
        encode = plain = lambda text: tekken.encode(text, bos=False, eos=False)
        decode = lambda ids: ""
    else:
        whole, bare = load(path, set(asked["control"]))
        encode = lambda text: whole.encode(text, add_special_tokens=False).ids
        plain = lambda text: bare.encode(text, add_special_tokens=False).ids
        decode = lambda ids: whole.decode(ids, skip_special_tokens=False)
    half = len(asked["texts"]) // 2  # measured on the second half, when caches have warmed up
    ids = [encode(text) for text in asked["texts"][:half]]
    started = time.process_time()
    ids += [encode(text) for text in asked["texts"][half:]]
    seconds = time.process_time() - started
    result = {"ids": ids, "plain": [plain(text) for text in asked["texts"]], "decoded": [decode(one) for one in asked["ids"]]}
    json.dump({**result, "seconds": seconds}, sys.stdout)


def tables():
    """The code points in each class, and those that each normal form changes, with what they become."""
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000 and point != 1]
    result = {"classes": {}, "forms": {}}
    for name in CLASSES:
        replace = normalizers.Replace(Regex(r"\s" if name == "White_Space" else rf"\p{{{name}}}"), "\x01")
        found = []
        for begin in range(0, len(points), 4096):
            part = points[begin : begin + 4096]
            changed = replace.normalize_str("".join(map(chr, part)))
            found += [point for point, character in zip(part, changed) if character == "\x01"]
        result["classes"][name] = found
    for name in ["NFC", "NFKC"]:
        form = getattr(normalizers, name)()
        pairs = ((chr(point), form.normalize_str(chr(point))) for point in points if point > 127)
        result["forms"][name] = {before: after for before, after in pairs if before != after}
    json.dump(result, sys.stdout)


if sys.argv[1] == "--tables":
    tables()
else:
    compare(sys.argv[1])
