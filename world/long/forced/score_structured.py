"""Scores the tokens of turns that a regular expression constrained, with transformers and xgrammar in float32: what an engine that
masks first and then divides by the temperature gives them. Reads JSON, prints the log-probabilities of each turn as JSON."""

import json
import sys

import torch
import xgrammar
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

asked = json.load(sys.stdin)
folder = asked["model"]
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
vocabulary = AutoConfig.from_pretrained(folder).vocab_size
tokenizer = AutoTokenizer.from_pretrained(folder)
compiler = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocabulary))


def score(logits: torch.Tensor, ids: list[int], turn: dict) -> list[float]:
    matcher = xgrammar.GrammarMatcher(compiler.compile_regex(turn["regex"]))
    mask = xgrammar.allocate_token_bitmask(1, vocabulary)
    found = []
    for at in range(turn["start"], turn["start"] + turn["length"]):
        row = logits[at - 1 : at].clone()
        matcher.fill_next_token_bitmask(mask)
        xgrammar.apply_token_bitmask_inplace(row, mask)
        found.append(torch.log_softmax(row[0] / turn["temperature"], dim=-1)[ids[at]].item())
        matcher.accept_token(ids[at])
    return found


scores = []
with torch.no_grad():
    for rollout in asked["rollouts"]:
        logits = model(torch.tensor([rollout["ids"]])).logits[0].float()
        scores.append([score(logits, rollout["ids"], turn) for turn in rollout["turns"]])
print(json.dumps(scores))
