"""Makes tests/train/fixtures/batches.safetensors: a batch of three demo clips as the GPT trainer of coqui-tts makes
it, for validation and for training. Run with the references' Python (scripts/references.sh):

    PYTHON tests/parity/make_batches_fixture.py

coqui-tts 0.28.0, torch and torchaudio 2.11.0, CPU, float32. The DVAE is the narrow random one of
tests/models/xtts/fixtures/dvae.safetensors: nothing of a released model is in it. Slices of training are drawn by
Tandem (seed 5, epoch 0; its test compares them), all else by coqui-tts.
"""
import pathlib
import random
import tempfile
import types

import torch
from safetensors.torch import load_file, save_file
from TTS.tts.layers.tortoise.arch_utils import TorchMelSpectrogram
from TTS.tts.layers.xtts import gpt as xtts_gpt
from TTS.tts.layers.xtts.dvae import DiscreteVAE
from TTS.tts.layers.xtts.trainer import dataset
from TTS.tts.layers.xtts.trainer.gpt_trainer import GPTTrainer

TESTS = pathlib.Path(__file__).resolve().parent.parent
NAMES = ["agent-alreadyon", "im-sorry", "vm-mailboxfull"]
TEXT_LENGTHS = [7, 4, 9]  # any: no text of ours is in it
SLICES = {"agent-alreadyon": (26979, 94444), "im-sorry": (7386, 18656), "vm-mailboxfull": (2922, 48610)}
EVERY_MEL, EVERY_FRAME = 8, 16

torch.set_num_threads(1)
weights = load_file(str(TESTS / "models/xtts/fixtures/dvae.safetensors"))
dvae = DiscreteVAE(channels=80, normalization=None, positional_dims=1, num_tokens=64, codebook_dim=16, hidden_dim=16,
                   num_resnet_blocks=3, kernel_size=3, num_layers=2, use_transposed_convs=False).eval()
dvae.load_state_dict({name: tensor for name, tensor in weights.items() if name.startswith(("encoder", "codebook"))},
                     strict=False)
with tempfile.TemporaryDirectory() as folder:
    stats = str(pathlib.Path(folder) / "stats.pth")
    torch.save(weights["mel_stats"], stats)
    trainer = types.SimpleNamespace(
        dvae=dvae,
        config=types.SimpleNamespace(audio=types.SimpleNamespace(sample_rate=22050, dvae_sample_rate=22050)),
        torch_mel_spectrogram_style_encoder=TorchMelSpectrogram(2048, 256, 1024, mel_norm_file=stats),
        torch_mel_spectrogram_dvae=TorchMelSpectrogram(mel_norm_file=stats))


def clip(name, validation):
    path = str(TESTS.parent / "assets/demo/wavs" / f"{name}.flac")
    wav = dataset.load_audio(path, 22050)
    drawn = iter(())
    if not validation:
        start, end = SLICES[name]
        drawn = iter((end - start, start))
    random.randint = lambda low, high: next(drawn)  # the length is asked for first, then the start
    cond, _, places = dataset.get_prompt_slice(path, 132300, 66150, 22050, validation)
    text = torch.arange(3, 3 + TEXT_LENGTHS[NAMES.index(name)], dtype=torch.int32)
    return {"text": text, "text_lengths": torch.tensor(len(text)), "wav": wav,
            "wav_lengths": torch.tensor(wav.shape[-1]), "filenames": path, "conditioning": cond.unsqueeze(1),
            "cond_lens": torch.tensor([torch.nan]), "cond_idxs": torch.tensor(places)}


def targets_of(batch, validation):
    """The audio targets GPT.forward asks for, those not learned as -1."""
    torch.manual_seed(1)
    gpt = xtts_gpt.GPT(start_text_token=1, stop_text_token=0, layers=1, model_dim=64, heads=2, max_text_tokens=30,
                       max_mel_tokens=140, number_text_tokens=40, num_audio_tokens=66, start_audio_token=64,
                       stop_audio_token=65, use_perceiver_resampler=True).train()
    asked = []
    entropy = xtts_gpt.F.cross_entropy

    def look(logits, targets, **rest):
        asked.append(targets.clone())
        return entropy(logits, targets, **rest)

    xtts_gpt.F.cross_entropy = look
    gpt(batch["text_inputs"].long(), batch["text_lengths"], batch["audio_codes"], batch["wav_lengths"],
        cond_mels=batch["cond_mels"], cond_idxs=None if validation else batch["cond_idxs"].clone())
    xtts_gpt.F.cross_entropy = entropy
    return asked[1]


tensors = {}
for kind in ("training", "validation"):
    items = [clip(name, kind == "validation") for name in NAMES]
    collated = dataset.XTTSDataset.collate_fn(None, items)
    batch = GPTTrainer.format_batch_on_device(trainer, collated)
    tensors[f"{kind}.slices"] = batch["cond_idxs"].clone()
    tensors[f"{kind}.wav_lengths"] = batch["wav_lengths"]
    tensors[f"{kind}.codes"] = batch["audio_codes"].to(torch.int32)
    tensors[f"{kind}.conditioning"] = batch["cond_mels"][:, 0, ::EVERY_MEL, ::EVERY_FRAME].contiguous()
    tensors[f"{kind}.frames"] = torch.tensor([batch["cond_mels"].shape[-1]])
    tensors[f"{kind}.targets"] = targets_of(batch, kind == "validation").to(torch.int32)
place = TESTS / "train" / "fixtures" / "batches.safetensors"
save_file(tensors, str(place), metadata={"made_by": "make_batches_fixture.py", "coqui-tts": "0.28.0"})
print(place, place.stat().st_size, "bytes", {name: tuple(tensor.shape) for name, tensor in tensors.items()})
