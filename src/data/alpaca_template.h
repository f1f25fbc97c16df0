// The prompt of Alpaca-style instruction data, in parts: before, between and after the row's texts.
#pragma once

#include <string_view>

namespace headroom {

struct AlpacaTemplate {
  std::string_view before_instruction;
  std::string_view before_input;  // empty: the row has none
  std::string_view before_output;
};

inline constexpr AlpacaTemplate kAlpacaWithInput{
    "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
    "response that "
    "appropriately completes the request.\n\n### Instruction:\n",
    "\n\n### Input:\n", "\n\n### Response:\n"};

inline constexpr AlpacaTemplate kAlpacaWithoutInput{
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n",
    "", "\n\n### Response:\n"};

}  // namespace headroom
