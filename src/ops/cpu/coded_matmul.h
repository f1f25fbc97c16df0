// Products with a B in blocks of codes, by a library that does not support codes: the team decodes some columns of B at
// a time, they are multiplied, and the resulting columns are copied to C.
#pragma once

#include "ops/cpu/matmul.h"

namespace headroom {

// `make` prepares the products of decoded columns.
MatmulOffer make_coded_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked, MatmulMaker make);

}  // namespace headroom
