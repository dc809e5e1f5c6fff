// Precompiled for every file that touches tensors. Nothing of ours: a change would rebuild all.
#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <fmt/format.h>
