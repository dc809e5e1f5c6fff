"""Makes tests/train/fixtures/weight_groups.txt: which parameters of XTTS's GPT decay, by coqui-tts's own grouping on
a small GPT. Lines of `decay NAME` and `plain NAME`, names as in model.pth. Run with the references' Python
(scripts/references.sh):

    PYTHON tests/parity/make_weight_group_fixtures.py

coqui-tts 0.28.0, torch 2.11.0, CPU.
"""
import pathlib
import types

import torch
from TTS.tts.layers.xtts.gpt import GPT
from TTS.tts.layers.xtts.trainer.gpt_trainer import GPTTrainer

gpt = GPT(layers=2, model_dim=32, heads=2, max_text_tokens=10, max_mel_tokens=12, max_prompt_tokens=5,
          number_text_tokens=20, start_text_token=18, stop_text_token=0, num_audio_tokens=18, start_audio_token=16,
          stop_audio_token=17, use_perceiver_resampler=True, code_stride_len=1024)
config = types.SimpleNamespace(optimizer_wd_only_on_weights=True, optimizer="AdamW", lr=5e-6,
                               optimizer_params={"betas": [0.9, 0.96], "eps": 1e-8, "weight_decay": 1e-2})
optimizer = GPTTrainer.get_optimizer(types.SimpleNamespace(config=config, xtts=types.SimpleNamespace(gpt=gpt)))

names = {parameter: name for name, parameter in gpt.named_parameters()}
lines = []
for group in optimizer.param_groups:
    kind = "decay" if group["weight_decay"] else "plain"
    lines += [f"{kind} gpt.{names[parameter]}" for parameter in group["params"]]
assert len(set(lines)) == len(lines) == len(names), (len(lines), len(names))
place = pathlib.Path(__file__).parent.parent / "train" / "fixtures" / "weight_groups.txt"
place.write_text("\n".join(sorted(lines)) + "\n")
print(place, len(lines), "parameters, torch", torch.__version__)
