#include "runtime/calibrate/sizes.h"

namespace headroom {

CalibrationSizes cpu_sizes() {
  CalibrationSizes sizes;
  sizes.products = {{64, 256, 256},    {256, 256, 256},    {1024, 256, 256},  {256, 192, 576},  {512, 576, 576},
                    {2048, 576, 576},  {512, 1536, 576},   {2048, 1536, 576}, {512, 576, 1536}, {2048, 576, 1536},
                    {128, 1024, 1024}, {1024, 1024, 1024}, {512, 2048, 2048}, {256, 8192, 576}, {256, 1536, 576},
                    {256, 576, 1536},  {1024, 3072, 768},  {1024, 768, 3072}};
  sizes.narrow = {{512, 16, 576}, {512, 576, 16}, {512, 16, 1536}, {512, 1536, 16}};
  sizes.decoding = {{1, 1536, 576}, {8, 1536, 576}};
  sizes.residuals = {{512, 576, 576}, {2048, 576, 576}, {512, 576, 1536}, {2048, 576, 1536}, {1024, 1024, 1024}};
  sizes.losses = {{4, 32768, 576}, {64, 8192, 576}, {256, 8192, 576}, {1024, 8192, 576}, {256, 4096, 2048}};
  sizes.attention = {{128, 64}, {256, 64}, {512, 64}, {2048, 64}, {512, 128}};
  sizes.warm_up = {2048, 1536, 576}, sizes.before = {256, 576, 576};
  sizes.layer = {512, 1536, 576}, sizes.layer_sets = 3;
  sizes.stream_rows = 2048, sizes.stream_width = 768;
  sizes.optimizer_elements = 3 << 20;
  sizes.softmax_rows = 256, sizes.softmax_vocabulary = 16384;
  sizes.buffer_bytes = int64_t{160} << 20;
  sizes.cold_bytes = int64_t{12} << 20;
  sizes.seconds_per_point = 0.013;
  return sizes;
}

CalibrationSizes gpu_sizes() {
  CalibrationSizes sizes;
  sizes.products = {{128, 1024, 1024},   {512, 1024, 1024},   {2048, 1024, 1024}, {2048, 896, 896},
                    {8192, 896, 896},    {8192, 4864, 896},   {8192, 896, 4864},  {4096, 2048, 2048},
                    {8192, 3072, 3072},  {8192, 8192, 3072},  {8192, 3072, 8192}, {4096, 4096, 4096},
                    {8192, 14336, 4096}, {8192, 4096, 14336}, {32768, 896, 896},  {32768, 4864, 896},
                    {32768, 3072, 3072}};
  sizes.narrow = {{8192, 16, 2048}, {8192, 2048, 16}, {8192, 16, 8192}, {8192, 8192, 16}};
  sizes.residuals = {{8192, 896, 896}, {8192, 3072, 3072}, {8192, 3072, 8192}, {4096, 4096, 4096}};
  sizes.losses = {{256, 32768, 2048}, {1024, 32768, 896}, {4096, 32768, 2048}, {4096, 32768, 4096}};
  sizes.attention = {{512, 64, 64}, {1024, 64, 32}, {4096, 64, 8}, {1024, 128, 32}, {4096, 128, 8}};
  sizes.warm_up = {8192, 4096, 4096};
  sizes.stream_rows = 8192, sizes.stream_width = 4096;
  sizes.optimizer_elements = int64_t{64} << 20;
  sizes.softmax_rows = 2048, sizes.softmax_vocabulary = 65536;
  // Slightly less than a multiple of the pieces in which a device gives memory: the unused rest of an arena's last
  // piece is measured with the context.
  sizes.buffer_bytes = (int64_t{3} << 30) + 256;
  sizes.cold_bytes = int64_t{256} << 20;
  sizes.seconds_per_point = 0.02;
  sizes.launches_per_wait = 4;
  return sizes;
}

}  // namespace headroom
