// A value of --precision, as the header of its technique gives it.
#pragma once

#include <string_view>

#include "ir/dtype.h"
#include "passes/pass_info.h"

namespace headroom {

struct Precision {
  std::string_view word;
  const PassInfo* technique;
  DType narrow;
  bool keeps_fp32;  // weights stay fp32 and products round them; else the weights themselves are narrow
  // f16 gradients vanish without a factor on the loss.
  constexpr bool scales_loss() const { return narrow == DType::f16; }
};

}  // namespace headroom
