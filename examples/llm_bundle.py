"""Tokens from a bundle of a language model for the BM1684X, as the vendor's llm_convert makes them.

python examples/llm_bundle.py model.bmodel 1,17,300,42 --count 8
python examples/llm_bundle.py model.bmodel 1,17,300,42 --one-by-one    # where the nets for prompts are dynamic
"""

from __future__ import annotations

import argparse

from bmcompiler.errors import BMError
from bmcompiler.llm import Bundle, Generator


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("prompt", help="numbers of tokens, with commas")
    parser.add_argument("--count", type=int, default=8, help="tokens to generate")
    parser.add_argument("--one-by-one", action="store_true", help="read the prompt with the nets for one token")
    given = parser.parse_args()
    prompt = [int(token) for token in given.prompt.split(",")]
    try:
        generator = Generator(Bundle.load(given.bundle))
        for token in generator.generate(prompt, given.count, one_by_one=given.one_by_one):
            print(token, flush=True)
    except BMError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
