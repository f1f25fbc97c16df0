// Products with few rows whose operands are both stored by steps of the depth (gradients of adapters): B is read once,
// row by row of memory, each piece multiplied as soon as it is in the first-level cache.
#pragma once

#include "ops/cpu/blocked_matmul.h"

namespace headroom {

// For what runs_thin takes; `tiles`: those of offer_amx_tiles. Refuses when more than `booked` bytes of scratch are
// needed.
MatmulOffer make_amx_thin_matmul(const MatmulSpec& spec, const TileKernel& tiles, const DeviceFacts& facts,
                                 int64_t booked);

}  // namespace headroom
