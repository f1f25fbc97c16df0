// Products of bytes on AVX-512 VNNI, which every processor with AVX-512 BF16 has. Only functions marked
// HEADROOM_AVX512_VNNI may use them; empty unless HEADROOM_HAS_AVX512 is defined.
#pragma once

#include "ops/cpu/avx512_floats.h"

#ifdef HEADROOM_HAS_AVX512

#define HEADROOM_AVX512_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx512vnni")))
// The same for pieces of a few instructions, whose vectors stay in registers.
#define HEADROOM_AVX512_VNNI_INLINE HEADROOM_AVX512_VNNI __attribute__((always_inline))

#endif
