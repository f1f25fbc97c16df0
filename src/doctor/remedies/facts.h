// What the inputs show of the facts on which remedies depend: that something trains, that a step was reached, that the
// program is PyTorch's. preconditions.h says which remedy depends on which.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {

enum class Fact {
  training,        // something is trained
  prediction,      // something predicts: inference, or the evaluation of a training
  weights_loaded,  // it did not fail before the first step
  step_failed,     // it did not fail while it saved, beside the steps
  several_rows,    // the batch can be halved
  loader,          // a data loader works there
  pinned,          // batches are kept in pinned memory
  swap_can_grow,   // nobody else runs the machine
  images,          // the inputs are images, volumes or videos
  texts,           // the inputs are texts
  pytorch,         // the program is PyTorch's
  pytorch_2,       // and not of a release before 2.0
  segments_grow,   // the system maps memory behind a reserved range
};
constexpr size_t kFactCount = static_cast<size_t>(Fact::segments_grow) + 1;

enum class Shown { no, open, yes };

struct FactShown {
  Shown shown = Shown::open;
  std::string against;  // why not; empty unless it is `no`
};

// All facts of a case.
class Facts {
 public:
  Facts(const CaseView& view, const std::vector<Seen>& seen);
  const FactShown& operator[](Fact fact) const { return all_[static_cast<size_t>(fact)]; }

 private:
  std::array<FactShown, kFactCount> all_;
};

// The framework, other than PyTorch, that the log names, also where no device message does; empty where there is none.
std::string_view other_framework(const CaseView& view);
// Words of the log that tell of a training.
bool says_training(const CaseView& view);

}  // namespace headroom::doctor
