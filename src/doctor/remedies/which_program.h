// Programs that are neither PyTorch nor one of its present rivals, and whose options differ from those of both:
// Darknet, Caffe, Caffe2, MXNet, Theano, Torch 7. A log shows them by their commands, files and messages.
#pragma once

#include <string>
#include <string_view>

namespace headroom::doctor {

struct OtherProgram {
  std::string_view name;  // "darknet"; empty: none is shown
  std::string_view word;  // what shows it
};

// Texts in lower case. What only such a program writes decides; its bare name does only where no other framework is
// named.
OtherProgram other_program(const std::string& log, const std::string& setup);
// The name is one of other_program().
bool is_other_program(std::string_view name);

}  // namespace headroom::doctor
