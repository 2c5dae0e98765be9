"""A small Llama that has learned to write like manuals: `python models/small_llama.py` trains `models/small_llama`.

About 1.8 million parameters: 4 layers of 192 channels, 6 heads of 32 that share 2 keys and values, SwiGLU of 512, tied
embeddings of 1024 pieces. The text lies on every machine: the topics of Python's `help()`, the docstrings of its
library, its licence, and the pages of this project. What is committed is the outcome of one run: `model.safetensors`
(float16), `config.json` and `tokenizer.json` as Hugging Face writes them, and `valid.txt`, the documents that were held
back, by which perplexity is measured. Another Python has other texts, so another run gives other weights; the seed
gives the same for the same texts. Needs torch, safetensors and tokenizers; a quarter of an hour of one core.

What it reads and writes begins with `<s>`: each window it was trained on, each window of a perplexity, each prompt.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import re
import sysconfig
import time
import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.nn import functional

FOLDER = Path(__file__).resolve().parent / "small_llama"
SEED = 33
STEPS, SCHEDULE, BATCH, WINDOW = 770, 1000, 8, 512
"""Steps that are made, and after how many the rate would be lowest."""
RATE, WARM_UP, DECAY = 3e-3, 50, 0.1
HELD_BACK = 40
"""One document of so many is not trained on."""
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 1024, "hidden_size": 192,
    "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 6, "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu", "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "rope_scaling": None, "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": True,
    "bos_token_id": 0, "eos_token_id": 1, "torch_dtype": "float16", "use_cache": True,
}  # fmt: skip


def documents() -> list[str]:
    """The texts, each once, in an order that does not depend on the file system."""
    library = Path(sysconfig.get_paths()["stdlib"])
    from pydoc_data.topics import topics

    found = [topics[name] for name in sorted(topics)]
    for source in sorted(library.glob("*.py")) + sorted(library.glob("[a-z]*/*.py")):
        if source.parent.name in ("site-packages", "test", "idlelib", "lib2to3", "pydoc_data", "encodings"):
            continue
        try:
            tree = ast.parse(source.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        nodes = (ast.Module, ast.ClassDef, ast.FunctionDef)
        found += [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, nodes)]
    project = Path(__file__).resolve().parents[1]
    pages = [project / "README.md", project / "ARCHITECTURE.md", project / "LICENSE", library / "LICENSE.txt"]
    pages += sorted((project / "docs").glob("*.md"))
    found += [page.read_text(encoding="utf-8") for page in pages if page.is_file()]
    texts = (re.sub(r"\n{3,}", "\n\n", text.encode("ascii", "ignore").decode()).strip() for text in found)
    return list(dict.fromkeys(text for text in texts if len(text) > 200))


def tokenizer_of(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG["vocab_size"], special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


class Block(nn.Module):
    """A layer, with the names of a Hugging Face Llama."""

    def __init__(self) -> None:
        super().__init__()
        width, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
        self.heads, self.shared, self.dim = (
            CONFIG["num_attention_heads"],
            CONFIG["num_key_value_heads"],
            CONFIG["head_dim"],
        )
        rows = {"q": self.heads * self.dim, "k": self.shared * self.dim, "v": self.shared * self.dim}
        attention = {f"{name}_proj": nn.Linear(width, n, bias=False) for name, n in rows.items()}
        self.self_attn = nn.ModuleDict({**attention, "o_proj": nn.Linear(self.heads * self.dim, width, bias=False)})
        self.mlp = nn.ModuleDict({f"{name}_proj": nn.Linear(width, inner, bias=False) for name in ("gate", "up")})
        self.mlp["down_proj"] = nn.Linear(inner, width, bias=False)
        self.input_layernorm = nn.RMSNorm(width, CONFIG["rms_norm_eps"])
        self.post_attention_layernorm = nn.RMSNorm(width, CONFIG["rms_norm_eps"])

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        n, length, _ = x.shape
        y = self.input_layernorm(x)
        q, k, v = (
            self.self_attn[f"{name}_proj"](y).view(n, length, -1, self.dim).transpose(1, 2) for name in ("q", "k", "v")
        )
        q, k = (t * cos + torch.cat((-t[..., self.dim // 2 :], t[..., : self.dim // 2]), -1) * sin for t in (q, k))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.self_attn["o_proj"](mixed.transpose(1, 2).reshape(n, length, -1))
        y = self.post_attention_layernorm(x)
        return x + self.mlp["down_proj"](functional.silu(self.mlp["gate_proj"](y)) * self.mlp["up_proj"](y))


class SmallLlama(nn.Module):
    """The whole model: token ids (n, length) to scores (n, length, pieces)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(CONFIG["vocab_size"], CONFIG["hidden_size"])
        self.layers = nn.ModuleList(Block() for _ in range(CONFIG["num_hidden_layers"]))
        self.norm = nn.RMSNorm(CONFIG["hidden_size"], CONFIG["rms_norm_eps"])
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                ends = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * CONFIG["num_hidden_layers"] if ends else 1))

    def forward(self, ids: Tensor) -> Tensor:
        dim = CONFIG["head_dim"]
        angles = torch.arange(ids.shape[1])[:, None] * CONFIG["rope_theta"] ** (-torch.arange(0, dim, 2) / dim)
        cos, sin = (torch.cat((f(angles), f(angles)), -1) for f in (torch.cos, torch.sin))
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return functional.linear(self.norm(x), self.embed_tokens.weight)


def begun(windows: Tensor) -> Tensor:
    """Windows (n, length) with `<s>` before them."""
    return functional.pad(windows, (1, 0), value=CONFIG["bos_token_id"])


def loss_of(model: SmallLlama, windows: Tensor) -> Tensor:
    ids = begun(windows)
    return functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def perplexity(model: SmallLlama, ids: Tensor) -> float:
    """Of token ids (n,), in windows of `WINDOW`, each after `<s>`; what is left at the end is not judged."""
    windows = ids[: len(ids) // WINDOW * WINDOW].view(-1, WINDOW)
    return math.exp(float(np.mean([loss_of(model, one[None]).item() for one in windows])))


def train(model: SmallLlama, ids: Tensor, steps: int) -> None:
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95))
    began = time.process_time()
    for step in range(steps):
        left = 0.5 + 0.5 * math.cos(math.pi * step / SCHEDULE)
        for group in adam.param_groups:
            group["lr"] = RATE * min((step + 1) / WARM_UP, 0.02 + 0.98 * left)
        starts = torch.randint(len(ids) - WINDOW, (BATCH,)).tolist()
        loss = loss_of(model, torch.stack([ids[start : start + WINDOW] for start in starts]))
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}, {time.process_time() - began:.0f} s", flush=True)


@torch.no_grad()
def written(model: SmallLlama, tokenizer: Tokenizer, prompt: str, count: int) -> str:
    """What the model writes behind a prompt, the most probable piece each time."""
    ids = tokenizer.encode(prompt).ids
    for _ in range(count):
        ids.append(int(model(begun(torch.tensor([ids])))[0, -1].argmax()))
    return tokenizer.decode(ids)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=FOLDER)
    asked = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    texts = documents()
    kept = [text for text in texts if zlib.crc32(text.encode()) % HELD_BACK]
    held = "\n\n".join(text for text in texts if zlib.crc32(text.encode()) % HELD_BACK == 0) + "\n"
    tokenizer = tokenizer_of(kept)
    ids = torch.tensor(tokenizer.encode("\n\n".join(kept)).ids)
    valid = torch.tensor(tokenizer.encode(held).ids)
    model = SmallLlama()
    print(f"{sum(map(len, kept))} characters, {len(ids)} tokens; {len(valid)} held back", flush=True)
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    train(model, ids, asked.steps)
    model.half().float()  # what is measured is what is written
    print(f"perplexity of the held back text, float32: {perplexity(model, valid):.4f}")
    print(written(model, tokenizer, "The compiler", 200))
    asked.out.mkdir(parents=True, exist_ok=True)
    tensors = {f"model.{name}": p.detach().half().contiguous() for name, p in model.named_parameters()}
    save_file(tensors, asked.out / "model.safetensors", metadata={"format": "pt"})
    (asked.out / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    (asked.out / "valid.txt").write_text(held)
    tokenizer.save(str(asked.out / "tokenizer.json"))


if __name__ == "__main__":
    main()
