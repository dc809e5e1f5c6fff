#ifdef TANDEM_WITH_CUDA
#include "nn/gpt_step/gpt_products.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "nn/work_note.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr int64_t workspace_size = int64_t{32} << 20;
constexpr int most_candidates = 24;

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::device,
              fmt::format("cuBLASLt refused {} (status {})", what, static_cast<int>(status)));
}

// What decides how a product is computed. `rows` and `inner` stand apart: one of them is the number
// of places, and a measured choice serves all sizes of it.
using Form = std::tuple<int64_t, bool, bool, bool, bool, int, bool>;
using Size = std::pair<int64_t, int64_t>;

bool is_fp8(const Product& p) { return p.left_scales && p.right_scales; }

Form form_of(const Product& p) {
  return {p.columns,  p.left_turned,     p.right_turned,
          p.to_float, p.adds || p.added, p.before_gelu ? 2 : p.bias ? 1 : 0,
          is_fp8(p)};
}

// cuBLASLt counts columns first: it computes out^T = right^T left^T.
struct Description {
  cublasLtMatmulDesc_t matmul = nullptr;
  cublasLtMatrixLayout_t right = nullptr, left = nullptr, out = nullptr;

  explicit Description(const Product& p) {
    check(cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
    const cublasOperation_t turned = CUBLAS_OP_T, straight = CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.right_turned ? turned : straight);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.left_turned ? turned : straight);
    if (p.bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE,
          p.before_gelu ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    }
    if (p.before_gelu) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.before_gelu);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.columns);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, CUDA_R_16BF);
    }
    if (is_fp8(p)) {
      // Sums of 1,024 to 4,096 products of three-bit numbers: the tensor cores' own are good
      // enough.
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
      set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p.right_scales);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p.left_scales);
    }
    const cudaDataType read = is_fp8(p) ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
    right = layout(read, p.right_turned ? p.inner : p.columns, p.right_turned ? p.columns : p.inner,
                   p.right_stride);
    left = layout(read, p.left_turned ? p.rows : p.inner, p.left_turned ? p.inner : p.rows,
                  p.left_stride);
    out = layout(p.to_float ? CUDA_R_32F : CUDA_R_16BF, p.columns, p.rows, p.out_stride);
  }
  ~Description() {
    cublasLtMatmulDescDestroy(matmul);
    for (auto* one : {right, left, out}) cublasLtMatrixLayoutDestroy(one);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t name, const T& value) {
    check(cublasLtMatmulDescSetAttribute(matmul, name, &value, sizeof(value)), "an attribute");
  }
  static cublasLtMatrixLayout_t layout(cudaDataType type, int64_t high, int64_t wide,
                                       int64_t stride) {
    cublasLtMatrixLayout_t out = nullptr;
    check(cublasLtMatrixLayoutCreate(&out, type, static_cast<uint64_t>(high),
                                     static_cast<uint64_t>(wide), stride ? stride : high),
          "a layout");
    return out;
  }
};

}  // namespace

struct Products::Parts {
  cublasLtHandle_t handle = nullptr;
  at::Tensor workspace;
  std::map<Form, std::map<Size, cublasLtMatmulAlgo_t>> measured, chosen;

  std::vector<cublasLtMatmulHeuristicResult_t> candidates(const Description& d, int most) {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "a preference");
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace_size, sizeof(workspace_size));
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(most));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, d.matmul, d.right, d.left, d.out, d.out, preference, most, found.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS) count = 0;
    found.resize(static_cast<size_t>(count));
    std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
    return found;
  }

  cublasStatus_t launch(const Product& p, const Description& d, const cublasLtMatmulAlgo_t& algo,
                        cudaStream_t stream) {
    const float one = 1, add = p.adds || p.added ? 1.f : 0.f;
    const void* before = p.added ? p.added : p.out;
    return cublasLtMatmul(handle, d.matmul, &one, p.right, d.right, p.left, d.left, &add, before,
                          d.out, p.out, d.out, &algo, workspace.data_ptr(),
                          static_cast<size_t>(workspace_size), stream);
  }

  std::optional<cublasLtMatmulAlgo_t> nearest_measured(const Product& p, const Description& d) {
    const auto found = measured.find(form_of(p));
    if (found == measured.end()) return {};
    // Sizes that grow together are in order in the map: the first not smaller, else the largest.
    const cublasLtMatmulAlgo_t* best = nullptr;
    for (const auto& [size, algo] : found->second) {
      if ((p.left_turned ? size.first == p.rows : size.second == p.inner) == false) continue;
      best = &algo;
      if (size.first >= p.rows && size.second >= p.inner) break;
    }
    cublasLtMatmulHeuristicResult_t result{};
    if (!best ||
        cublasLtMatmulAlgoCheck(handle, d.matmul, d.right, d.left, d.out, d.out, best, &result) !=
            CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > static_cast<size_t>(workspace_size))
      return {};
    return *best;
  }

  const cublasLtMatmulAlgo_t& algorithm(const Product& p, const Description& d) {
    auto& sizes = chosen[form_of(p)];
    const Size size{p.rows, p.inner};
    if (const auto found = sizes.find(size); found != sizes.end()) return found->second;
    if (const auto near = nearest_measured(p, d)) return sizes[size] = *near;
    const auto first = candidates(d, 1);
    if (first.empty())
      throw Error(
          ErrorKind::device,
          fmt::format("cuBLASLt has no product of [{}, {}] and [{}, {}] in {}", p.rows, p.inner,
                      p.inner, p.columns, is_fp8(p) ? "8-bit floats" : "bfloat16"));
    return sizes[size] = first.front().algo;
  }
};

Products::Products() : parts_(std::make_unique<Parts>()) {
  check(cublasLtCreate(&parts_->handle), "to start");
  parts_->workspace = at::empty({workspace_size}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
}
Products::~Products() { cublasLtDestroy(parts_->handle); }

uint64_t Products::workspace_bytes() const { return static_cast<uint64_t>(workspace_size); }

void Products::run(const Product& product, cudaStream_t stream) {
  const Description description(product);
  const auto rows = static_cast<double>(product.rows), inner = static_cast<double>(product.inner),
             columns = static_cast<double>(product.columns);
  const int passes = product.adds || product.added ? 2 : 1;  // over the result
  const WorkNote note(is_fp8(product) ? "tandem::fp8_product" : "tandem::product",
                      2 * rows * inner * columns,
                      (is_fp8(product) ? 1 : 2) * inner * (rows + columns) +
                          (product.to_float ? 4 : 2) * passes * rows * columns);
  check(parts_->launch(product, description, parts_->algorithm(product, description), stream),
        "a product");
}

float Products::tune(const Product& product, cudaStream_t stream) {
  const Description description(product);
  constexpr int repeats = 3;
  std::array<std::array<cudaEvent_t, 2>, repeats> events{};
  for (auto& pair : events)
    for (auto& event : pair) C10_CUDA_CHECK(cudaEventCreate(&event));
  // In a pass nothing of a product is in the cache: push it out before each measured one.
  const at::Tensor other = at::empty({96 << 20}, parts_->workspace.options());
  float best = 0;
  const Size size{product.rows, product.inner};
  for (const auto& candidate : parts_->candidates(description, most_candidates)) {
    if (parts_->launch(product, description, candidate.algo, stream) != CUBLAS_STATUS_SUCCESS)
      continue;
    for (const auto& [begin, end] : events) {
      C10_CUDA_CHECK(cudaMemsetAsync(other.data_ptr(), 0, other.nbytes(), stream));
      C10_CUDA_CHECK(cudaEventRecord(begin, stream));
      check(parts_->launch(product, description, candidate.algo, stream), "a product");
      C10_CUDA_CHECK(cudaEventRecord(end, stream));
    }
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    float shortest = 0;
    for (const auto& [begin, end] : events) {
      float milliseconds = 0;
      C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
      if (shortest == 0 || milliseconds < shortest) shortest = milliseconds;
    }
    if (best > 0 && shortest >= best) continue;
    best = shortest;
    parts_->measured[form_of(product)][size] = candidate.algo;
  }
  parts_->chosen.clear();
  for (auto& pair : events)
    for (auto& event : pair) cudaEventDestroy(event);
  return best;
}

}  // namespace tandem
#endif
