// Products with a B in blocks of codes by a library that knows none: some columns of B after the other are decoded on
// the team and multiplied, and the columns of C that they make are put in place.
#pragma once

#include "ops/cpu/matmul.h"

namespace headroom {

// `make` prepares the products of decoded columns.
MatmulOffer make_coded_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked, MatmulMaker make);

}  // namespace headroom
