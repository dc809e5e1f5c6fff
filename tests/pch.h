// Precompiled for every test that touches tensors.
#pragma once
#include <gtest/gtest.h>

#include "../src/pch.h"
