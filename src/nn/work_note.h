// How much work a kernel of ours is, told by whoever launches it, for whoever traces: the share of
// what the device can do follows from it. Where nobody listens it is a look at a flag.
//
//   const WorkNote note("tandem::row_product", 2.0 * rows * inner * columns, bytes);
//   kernel<<<…>>>(…);
//
// Everything launched while it lives counts as this work; one kernel to a note, where possible.
// What is not known is 0. Without LibTorch's headers, so that kernels' files can use it.
#pragma once

namespace tandem {

class WorkNote {
 public:
  // `flops`: floating-point operations, a multiplication and an addition counting as two; `bytes`:
  // read from and written to memory, each once. `name` must outlive it and begin with "tandem::".
  WorkNote(const char* name, double flops, double bytes);
  ~WorkNote();
  // Whether anybody listens, for figures that are dear to come by.
  static bool heard();
  WorkNote(const WorkNote&) = delete;
  WorkNote& operator=(const WorkNote&) = delete;

 private:
  struct Told;
  Told* told_ = nullptr;  // only while somebody listens
};

}  // namespace tandem
