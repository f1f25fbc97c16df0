// The instruction sets our Highway kernels are built for: AVX2, AVX-512 and the portable fallback. Include before any
// header of Highway.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
