#!/usr/bin/env python3
"""Makes tests/models/fixtures/musicgen/tokens.safetensors: what transformers' generate() gives for the folders beside
it (made by make_musicgen_fixtures.py), and how its warpers and draws treat scores. Run with the references' Python:

    PYTHON tests/parity/make_musicgen_token_fixtures.py

transformers 4.57.6, tokenizers 0.22.2, torch 2.11.0, CPU, float32. Names are FOLDER/CASE/TENSOR with tensors as
`tandem trace musicgen` names them.
"""
import json

import torch
from safetensors.torch import save_file
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from compare_musicgen import Reference
from make_musicgen_fixtures import CAPTIONS, FOLDER, VERSIONS

WARPS = {"all": (1.0, 0, 1.0), "k5": (1.0, 5, 1.0), "p": (1.0, 0, 0.7), "least": (1.0, 0, 0.0),
         "both": (1.3, 9, 0.8), "hot": (2.5, 0, 0.95)}


def scores_with_ties(generator):
    scores = torch.randn(4, 24, generator=generator).mul(2)
    scores[1, 7] = scores[1].topk(5).values[-1]  # equal to the fifth
    return scores


def warped(scores, temperature, top_k, top_p):
    if temperature != 1:
        scores = TemperatureLogitsWarper(temperature)(None, scores)
    if top_k:
        scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p < 1:
        scores = TopPLogitsWarper(top_p)(None, scores)
    return scores.softmax(-1)


def main():
    torch.set_num_threads(1)
    out = {}

    def keep(case, caught, *names):
        out.update({f"{case}/{name}": caught[name] for name in names})

    with torch.no_grad():
        for name in ("tiny", "odd", "stereo"):
            reference = Reference(FOLDER / name)
            batch, _ = reference.text(CAPTIONS)
            out[f"{name}/text_ids"], out[f"{name}/text_mask"] = batch.input_ids, batch.attention_mask
            for tokens in (5, 12, 40):
                caught = reference.generate(CAPTIONS, tokens, do_sample=False, guidance_scale=3.0)
                keep(f"{name}/greedy{tokens}", caught, "tokens", "codes")
                if tokens == 12:
                    keep(f"{name}/greedy{tokens}", caught, "logits_cond", "logits_uncond", "logits_cfg")
            keep(f"{name}/unguided", reference.generate(CAPTIONS, 12, do_sample=False, guidance_scale=1.0), "tokens",
                 "logits_cond")
            keep(f"{name}/drawn", reference.generate(CAPTIONS, 40, seed=3, do_sample=True), "tokens")
            keep(f"{name}/warped", reference.generate(CAPTIONS, 30, seed=4, do_sample=True, top_k=9, top_p=0.8,
                                                      temperature=1.3), "tokens")
            empty = reference.generate([CAPTIONS[0], ""], 12, do_sample=False)
            keep(f"{name}/empty", empty, "tokens")
            generator = torch.Generator().manual_seed(9)
            decoder = reference.model.decoder
            prompt = torch.randint(0, decoder.config.vocab_size, (3, decoder.num_codebooks, 7), generator=generator)
            for tokens in (3, 9):
                caught = reference.generate(CAPTIONS, tokens, do_sample=False,
                                            decoder_input_ids=prompt.reshape(-1, 7))
                keep(f"{name}/continued{tokens}", {**caught, "prompt_codes": prompt}, "tokens", "codes",
                     "prompt_codes")
        scores = scores_with_ties(torch.Generator().manual_seed(1))
        out["scores"] = scores
        for way, options in WARPS.items():
            out[f"chances/{way}"] = warped(scores, *options)
        torch.manual_seed(77)
        chances = scores.softmax(-1)
        out["multinomial"] = torch.stack([chances.multinomial(1).squeeze(1) for _ in range(50)])
    out = {key: (t.int() if t.dtype == torch.int64 else t.float()).contiguous() for key, t in out.items()}
    save_file(out, FOLDER / "tokens.safetensors",
              metadata={**VERSIONS, "made_by": "make_musicgen_token_fixtures.py", "captions": json.dumps(CAPTIONS),
                        "warps": json.dumps(WARPS)})


if __name__ == "__main__":
    main()
