"""Makes tests/checkpoint/fixtures/*.pth with PyTorch's own torch.save, and beside each a .safetensors with the same
tensors under the names Tandem gives them, to compare with. Also the seeds of tests/fuzz/corpus/{pth,safetensors}. Run
with the references' Python (scripts/references.sh):

    PYTHON tests/parity/make_pth_fixtures.py

torch 2.11.0, safetensors 0.8.0, coqui-tts 0.28.0 (for its settings' classes). Random numbers: nothing of a released
model is in them.
"""
import builtins
import collections
import os
import pathlib
import shutil
import subprocess
import zipfile

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from TTS.tts.configs.xtts_config import XttsConfig

TESTS = pathlib.Path(__file__).parent.parent
PLACE = TESTS / "checkpoint" / "fixtures"
FUZZ = TESTS / "fuzz" / "corpus"
PLACE.mkdir(parents=True, exist_ok=True)
torch.manual_seed(3)


def flat(value, path=""):
    """Tensors by the path of keys that leads to them."""
    if isinstance(value, torch.Tensor):
        yield path or "tensor", value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{path}/{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from flat(item, f"{path}/{number}" if path else str(number))


def save(name, value, legacy=False, **options):
    torch.save(value, PLACE / f"{name}.pth", _use_new_zipfile_serialization=not legacy, **options)
    tensors = {path: tensor.detach().clone().contiguous() for path, tensor in flat(value)}
    expected = PLACE / f"{name}.safetensors"
    save_file(tensors, str(expected))
    expected.chmod(0o644)


def many_kinds():
    base = torch.randn(4, 6)
    shared = torch.arange(24, dtype=torch.float32)
    state = collections.OrderedDict(
        float=torch.randn(2, 3), double=torch.randn(3, dtype=torch.float64), half=torch.randn(5).half(),
        bfloat=torch.randn(5).bfloat16(), long=torch.tensor([[-1, 2**40]]), int=torch.tensor([7, -7], dtype=torch.int32),
        short=torch.tensor([300], dtype=torch.int16), char=torch.tensor([-5], dtype=torch.int8),
        byte=torch.tensor([200, 1], dtype=torch.uint8), bool=torch.tensor([True, False, True]),
        scalar=torch.tensor(3.5), count=torch.tensor(9), empty=torch.empty(0, 4), none=torch.empty(2, 0, 3))
    state._metadata = collections.OrderedDict({"": {"version": 1}})
    return {
        "model": state,
        "parameter": torch.nn.Parameter(torch.randn(3, 2)),
        "views": {"transposed": base.t(), "columns": base[:, 1:5:2], "row": base[2], "whole": base,
                  "expanded": torch.tensor([1.0, 2.0]).expand(3, 2)},
        "shared": {"first": shared[:12].view(3, 4), "second": shared[6:].view(2, 9), "all": shared},
        "list": [torch.ones(2), {"deep": torch.zeros(1)}, (torch.full((2,), 2.0),)],
        "step": 12, "date": "2026-11-15", "loss": 0.25, "none": None, "yes": True, "size": torch.Size([2, 3]),
        "device": torch.device("cpu"), "dtype": torch.float16, "long": list(range(40)),
        7: torch.ones(1),
    }


# A folder's model.pth: a state and the object with all settings, as Coqui writes it.
def coqui_like():
    config = XttsConfig()
    return {"config": config, "model": {"gpt.final_norm.weight": torch.randn(4), "mel_stats": torch.rand(3)}}


def trainer_like():
    model = {"xtts.gpt.final_norm.weight": torch.randn(4), "dvae.codebook.embed": torch.randn(2, 3),
             "xtts.mel_stats": torch.rand(3)}
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.randn(4))])
    optimizer.param_groups[0]["params"][0].grad = torch.ones(4)
    optimizer.step()
    return {"config": {"model": "xtts", "languages": ["en"]}, "model": model, "optimizer": [optimizer.state_dict()],
            "step": 5, "epoch": 1, "model_loss": {"train_loss": None, "eval_loss": 2.5}}


save("kinds", many_kinds())
save("kinds_legacy", many_kinds(), legacy=True)
save("kinds_protocol5", many_kinds(), pickle_protocol=5)
save("coqui", coqui_like())
save("coqui_legacy", coqui_like(), legacy=True)
save("trainer", trainer_like())
save("bare", torch.rand(80))
save("bare_legacy", torch.rand(80), legacy=True)
torch.save(torch.nn.Linear(2, 2), PLACE / "module.pth")
torch.save({"complex": torch.randn(2, dtype=torch.complex64), "quantised": torch.quantize_per_tensor(
    torch.randn(3), 0.1, 0, torch.qint8), "unsigned": torch.tensor([1, 65535], dtype=torch.uint16)}, PLACE / "rare.pth")



# A folder in Coqui's form, with some tensors of each part.
def folder():
    place = PLACE / "xtts"
    place.mkdir(exist_ok=True)
    config = XttsConfig(temperature=0.75, repetition_penalty=5.0, languages=["en", "de"])
    arguments = config.model_args
    arguments.gpt_layers, arguments.gpt_n_model_channels, arguments.gpt_n_heads = 2, 8, 2
    arguments.gpt_num_audio_tokens, arguments.gpt_start_audio_token, arguments.gpt_stop_audio_token = 10, 8, 9
    arguments.gpt_use_perceiver_resampler, arguments.decoder_input_dim = True, 8
    config.save_json(str(place / "config.json"))
    decoder, encoder = "hifigan_decoder.waveform_decoder", "hifigan_decoder.speaker_encoder"
    state = {
        "mel_stats": torch.rand(80), "gpt.text_embedding.weight": torch.randn(6, 8), "gpt.mel_embedding.weight":
        torch.randn(10, 8), "gpt.conditioning_encoder.init.weight": torch.randn(8, 80, 1),
        f"{decoder}.conv_pre.weight": torch.randn(4, 8, 7),
        f"{decoder}.ups.0.parametrizations.weight.original0": torch.rand(4, 1, 1),
        f"{decoder}.ups.0.parametrizations.weight.original1": torch.randn(4, 2, 4),
        f"{encoder}.bn1.running_mean": torch.randn(3), f"{encoder}.bn1.num_batches_tracked": torch.tensor(0)}
    torch.save({"model": state, "config": config}, place / "model.pth")
    torch.save({"Ana": {"gpt_cond_latent": torch.randn(1, 2, 8), "speaker_embedding": torch.randn(1, 4, 1)}},
               place / "speakers_xtts.pth")
    tokenizer = Tokenizer(models.BPE(vocab={"[STOP]": 0, "[UNK]": 1, "a": 2, "[START]": 3, "b": 5}, merges=[],
                                     unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["[STOP]", "[UNK]", "[START]"])
    tokenizer.save(str(place / "vocab.json"))


folder()


# Files that would do something if Python unpickled them. Nothing here runs them.
class Trap:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


MARK = "touch tandem_pickle_was_run"
TRAPS = {"system": Trap(os.system, (MARK,)), "popen": Trap(subprocess.Popen, (MARK.split(),)),
         "eval": Trap(builtins.eval, (f"__import__('os').system('{MARK}')",)),
         "getattr": Trap(builtins.getattr, ("x", "upper"))}
for name, trap in TRAPS.items():
    torch.save({"model": {"weight": torch.ones(2)}, "config": trap}, PLACE / f"trap_{name}.pth")
torch.save({"model": {"weight": torch.ones(2)}, "config": TRAPS["system"]}, PLACE / "trap_legacy.pth",
           _use_new_zipfile_serialization=False)

for folder in ("pth", "safetensors"):
    (FUZZ / folder).mkdir(parents=True, exist_ok=True)
for name in ("kinds", "kinds_legacy", "kinds_protocol5", "trainer", "bare", "bare_legacy", "coqui", "trap_system", "rare"):
    shutil.copy(PLACE / f"{name}.pth", FUZZ / "pth" / name)
for name in ("kinds", "kinds_protocol5", "trainer", "coqui", "rare"):
    with zipfile.ZipFile(PLACE / f"{name}.pth") as archive:
        (FUZZ / "pth" / f"{name}.pkl").write_bytes(archive.read(f"{name}/data.pkl"))
for name in ("kinds", "bare"):
    shutil.copy(PLACE / f"{name}.safetensors", FUZZ / "safetensors" / name)
print(sum(file.stat().st_size for file in PLACE.rglob("*")), "bytes in", PLACE)
