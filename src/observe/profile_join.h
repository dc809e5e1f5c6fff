// Two observers of the same operations brought together: our own record, which knows the work of
// an operation, and Kineto's, whose numbers kernels refer to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tandem {

struct LaunchedOperation;
struct OperationRecord;

// Kineto's numbers -> places in the record. On each thread both saw operations begin in the same
// order; where one of them missed a few, those stay without a partner. Of a thread of which they
// tell different stories nothing is joined.
std::unordered_map<uint64_t, size_t> joined_operations(
    const OperationRecord& record, const std::vector<LaunchedOperation>& launches);

}  // namespace tandem
