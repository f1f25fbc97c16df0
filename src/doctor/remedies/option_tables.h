// The tables behind option_text.h, by group.
#pragma once

#include <span>

#include "doctor/remedies/option_text.h"

namespace headroom::doctor {

std::span<const OptionLine> batch_options();
std::span<const OptionLine> precision_options();
std::span<const OptionLine> optimizer_options();
std::span<const OptionLine> sharding_options();
std::span<const OptionLine> kernel_options();
std::span<const OptionLine> adapter_options();
std::span<const OptionLine> allocator_options();
std::span<const OptionLine> serving_options();
std::span<const OptionLine> host_options();
std::span<const OptionLine> script_options();

}  // namespace headroom::doctor
