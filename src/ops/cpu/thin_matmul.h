// Products with few rows and depth-major operands (gradients of adapters): B is read once, row by row, and each piece
// is multiplied as soon as it is in the L1 cache.
#pragma once

#include "ops/cpu/blocked_matmul.h"

namespace headroom {

// For products that runs_thin() accepts; `tiles`: from offer_amx_tiles(). Refuses if more than `booked` bytes of
// scratch are needed.
MatmulOffer make_amx_thin_matmul(const MatmulSpec& spec, const TileKernel& tiles, const DeviceFacts& facts,
                                 int64_t booked);

}  // namespace headroom
