// Precompiled for every file that touches tensors. Nothing of ours: a change would rebuild all.
#pragma once
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
