// Launchers of the device code of sequence lengths and of the offsets by which padding shifts positions.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// lengths[b] = tokens of ids[b, 0 .. seq) up to the last one that is not `pad`, at least 1.
void launch_sequence_lengths(const int32_t* ids, int64_t batch, int64_t seq, int32_t pad, int32_t* lengths,
                             CudaStream stream);

// starts[b, s] = number of `pad` in ids[b, 0 .. s), or s + 1 if ids[b, s] itself is `pad`.
void launch_padding_starts(const int32_t* ids, int64_t batch, int64_t seq, int32_t pad, int32_t* starts,
                           CudaStream stream);

// For each position the label of the next one; -100 at the end of a sequence.
void launch_next_labels(const int32_t* labels, int64_t batch, int64_t seq, int32_t* next, int multiprocessors,
                        CudaStream stream);

}  // namespace headroom::cuda
