// How many floating-point operations a second a device's own library makes of one big matrix
// product: what a step that is nothing but products could reach.
#pragma once

#include <string>

namespace tandem {

class LogicalDevice;

// `precision` is that of training: fp32, tf32, bf16 or fp16.
double product_rate(LogicalDevice& device, const std::string& precision);

}  // namespace tandem
