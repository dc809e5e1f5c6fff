"""Makes tests/train/fixtures/schedule.safetensors: learning rates of torch's own schedulers, step by step. Run with
the references' Python (scripts/references.sh):

    PYTHON tests/parity/make_schedule_fixtures.py

torch 2.11.0, CPU. Rates are those the optimizer steps 1, 2, 3, ... learn with, in float64.
"""
import pathlib

import torch
from safetensors.torch import save_file
from torch.optim import lr_scheduler

PEAK = 3e-4


def rates(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
    scheduler = make(optimizer)
    seen = []
    for _ in range(steps):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return torch.tensor(seen, dtype=torch.float64)


tensors = {
    # Cycles of 7, 14, 28, 56 steps.
    "restarts": rates(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=7, T_mult=2, eta_min=PEAK * 0.1), 120),
    # The last of 80 steps learns with the lowest rate.
    "cosine": rates(lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=79, eta_min=PEAK * 0.1), 80),
    "multistep": rates(lambda o: lr_scheduler.MultiStepLR(o, milestones=[5, 11, 30], gamma=0.5), 40),
    "noam": rates(lambda o: lr_scheduler.LambdaLR(
        o, lambda done: min((done + 1) / 25, (25 / (done + 1)) ** 0.5)), 100),
    "warmup": rates(lambda o: lr_scheduler.LambdaLR(o, lambda done: min((done + 1) / 10, 1.0)), 30),
}
place = pathlib.Path(__file__).parent.parent / "train" / "fixtures" / "schedule.safetensors"
place.parent.mkdir(parents=True, exist_ok=True)
save_file(tensors, str(place), metadata={"made_by": "make_schedule_fixtures.py", "torch": torch.__version__})
print(place, place.stat().st_size, "bytes")
