"""Converts the GGUF of a Llama model to the folder that vLLM and transformers load: the same weights in float32, unpacked, with
config, tokenizer and chat template. Usage: gguf-to-hf.py MODEL.gguf FOLDER"""

import sys
from pathlib import Path

import numpy
from gguf import GGUFReader, dequantize
from safetensors.numpy import save_file
from transformers import AutoTokenizer, LlamaConfig

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def to_hf_name(name: str) -> str:
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, kind, _ = name.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[kind]}.weight"


def split_rotary_pairs(rows: numpy.ndarray, heads: int) -> numpy.ndarray:
    """GGUF stores the two numbers that rotate together next to each other; transformers stores them half a head apart."""
    width = rows.shape[0] // heads
    order = numpy.concatenate([numpy.arange(0, width, 2), numpy.arange(1, width, 2)])
    return rows.reshape(heads, width, -1)[:, order].reshape(rows.shape)


def main(source: Path, target: Path) -> None:
    reader = GGUFReader(source)

    def setting(key: str):
        return reader.get_field(f"llama.{key}").contents()

    heads, kv_heads = setting("attention.head_count"), setting("attention.head_count_kv")
    heads_of = {"attn_q": heads, "attn_k": kv_heads}
    weights = {}
    for tensor in reader.tensors:
        values = numpy.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=numpy.float32)
        kind = tensor.name.split(".")[-2]
        if kind in heads_of:
            values = split_rotary_pairs(values, heads_of[kind])
        weights[to_hf_name(tensor.name)] = numpy.ascontiguousarray(values)

    target.mkdir(parents=True, exist_ok=True)
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(target)
    config = LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=weights["model.embed_tokens.weight"].shape[0],
        hidden_size=setting("embedding_length"),
        intermediate_size=setting("feed_forward_length"),
        num_hidden_layers=setting("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=setting("context_length"),
        rms_norm_eps=setting("attention.layer_norm_rms_epsilon"),
        rope_theta=setting("rope.freq_base"),
        tie_word_embeddings=True,
        bos_token_id=reader.get_field("tokenizer.ggml.bos_token_id").contents(),
        eos_token_id=reader.get_field("tokenizer.ggml.eos_token_id").contents(),
        pad_token_id=reader.get_field("tokenizer.ggml.eos_token_id").contents(),
        dtype="float32",
    )
    config.save_pretrained(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
