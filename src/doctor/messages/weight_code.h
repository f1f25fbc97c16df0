// Lines of code that read, make or move the weights of a model.
#pragma once

#include <string_view>

namespace headroom::doctor {

// "model = model.half().cuda()", "net.to(device)", "self.encoder.load_state_dict(state)", "Generator(64).cuda()".
// Not "images = images.cuda()": a batch is moved in the same way.
bool moves_weights(std::string_view code);
// A line inside a constructor that allocates them: "self.weight = Parameter(torch.empty(...))", "nn.Linear(a, b)".
bool makes_weights(std::string_view code);

}  // namespace headroom::doctor
