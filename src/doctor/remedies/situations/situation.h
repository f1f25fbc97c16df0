// What people run into besides a job that is simply too large: one record each, in the files of this folder.
//
// A situation is seen by the words of the log (messages, frames, lines of code) and of the configuration, or by the
// figures. Its evidence is the heaviest sign: 0.9 the log says so itself, 0.8 a frame or an option shows it, 0.7 it is
// the usual cause where nothing else is known. What it advises goes before remedies that no evidence speaks for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/remedies/case_view.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {

struct Sign {
  enum class In { log, setup, either } in = In::log;
  double weight = 0;
  std::string_view words;  // lower case, separated by '|': one of them stands there
};

// Up to here a situation is only what usually is to blame; from above it on its advice comes before what the estimate
// holds for likely.
constexpr double kUsual = 0.72;

struct Evidence {
  double weight = 0;  // 0: nothing speaks for it
  std::string shown;  // what does
};

struct Advice {
  std::string_view technique;       // one without changes to the job; its own rule's remedy is taken where there is one
  std::string_view set = {};        // empty: as the option tables spell it
  std::string_view why = {};        // empty: the situation's cause
  System system = System::unknown;  // for jobs of this system only, or of one built on it; unknown: for all
  std::string_view unless = {};     // words, as a sign's, of the log or the configuration that show it in force already
};

struct Situation {
  static constexpr size_t kMost = 6;
  std::string_view name;
  std::string_view cause;  // in a person's words
  bool (*possible)(const CaseView&);
  Sign sign_list[kMost];                           // those with words
  Advice advice_list[kMost];                       // the best first; those with a technique
  Evidence (*figures)(const CaseView&) = nullptr;  // what the figures show, where words are not all

  std::span<const Sign> signs() const {
    size_t count = 0;
    while (count < kMost && !sign_list[count].words.empty()) ++count;
    return {sign_list, count};
  }
  std::span<const Advice> advice() const {
    size_t count = 0;
    while (count < kMost && !advice_list[count].technique.empty()) ++count;
    return {advice_list, count};
  }
};

// The records of each file.
std::span<const Situation> saving_situations();
std::span<const Situation> reworking_situations();
std::span<const Situation> rerun_situations();
std::span<const Situation> chat_situations();
std::span<const Situation> evaluation_situations();
std::span<const Situation> input_situations();
std::span<const Situation> program_situations();
std::span<const Situation> loading_situations();
std::span<const Situation> server_situations();
std::span<const Situation> llama_cpp_situations();
std::span<const Situation> host_situations();
std::span<const Situation> device_situations();
std::span<const Situation> diffusion_situations();
std::span<const Situation> reinforcement_situations();
std::span<const Situation> sharding_situations();
std::span<const Situation> toolbox_situations();
std::span<const Situation> other_program_situations();
std::span<const Situation> model_size_situations();
std::vector<const Situation*> all_situations();

struct Seen {
  const Situation* situation;
  Evidence evidence;
};
// Those that something speaks for, the heaviest evidence first.
std::vector<Seen> seen_situations(const CaseView& view);

// Takes their advice into the findings: a remedy that a rule offers already gets their evidence and words.
void advise(const CaseView& view, const std::vector<Seen>& seen, Findings& findings);

}  // namespace headroom::doctor
