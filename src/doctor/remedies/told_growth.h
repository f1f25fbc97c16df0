// What people say about growing memory: the run failed after epochs or many steps without a problem.
#pragma once

#include <string_view>

namespace headroom::doctor {

// `log` is in lower case.

// The words that say that the run failed after whole epochs, or after steps, without a problem ("after 5-8 epochs",
// "when the epoch goes to 60"). Empty if there are none, or if their sentence says that memory does not grow.
std::string_view told_after_epochs(std::string_view log);
// Whether those words mean only the first few steps: nothing has grown by then.
bool only_first_steps(std::string_view told);

}  // namespace headroom::doctor
