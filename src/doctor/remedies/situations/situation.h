// Causes that people run into besides a job that is simply too large: one record each, in the files of this folder.
//
// A situation is recognised by words of the log (messages, frames, lines of code) and of the configuration, or by the
// figures. Its evidence is its strongest sign: 0.9 the log says so, 0.8 a frame or an option shows it, 0.7 it is the
// usual cause when nothing else is known. Its advice is placed before remedies that no evidence supports.
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
  std::string_view words;  // in lower case, separated by '|'; one of them must occur
};

// Up to this weight a situation is only the usual cause; above it, its advice is placed before what is likely by the
// estimate.
constexpr double kUsual = 0.72;

struct Evidence {
  double weight = 0;  // 0: no evidence
  std::string shown;  // the evidence
};

struct Advice {
  std::string_view technique;       // its rule's remedy if there is one, else a remedy without changes to the job
  std::string_view set = {};        // empty: the text of the option tables
  std::string_view why = {};        // empty: the situation's cause
  System system = System::unknown;  // only for jobs of this system or one built on it; unknown: for all
  std::string_view unless = {};     // words of the log or the configuration that show that it is in use already
};

struct Situation {
  static constexpr size_t kMost = 8;
  std::string_view name;
  std::string_view cause;  // in the user's terms
  bool (*possible)(const CaseView&);
  Sign sign_list[kMost];                           // used up to the first one without words
  Advice advice_list[kMost];                       // the best first; used up to the first one without a technique
  Evidence (*figures)(const CaseView&) = nullptr;  // evidence from the figures, when words are not enough

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
std::span<const Situation> chosen_device_situations();
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
std::span<const Situation> kohya_situations();
std::span<const Situation> reinforcement_situations();
std::span<const Situation> sharding_situations();
std::span<const Situation> toolbox_situations();
std::span<const Situation> other_program_situations();
std::span<const Situation> model_size_situations();
std::span<const Situation> inferring_situations();
std::span<const Situation> frame_situations();
std::span<const Situation> replay_situations();
std::span<const Situation> gathered_situations();
std::span<const Situation> release_situations();
std::span<const Situation> comfyui_situations();
std::span<const Situation> near_miss_situations();
std::span<const Situation> one_image_situations();
std::span<const Situation> long_row_situations();
std::span<const Situation> several_gpu_situations();
std::span<const Situation> host_job_situations();
std::span<const Situation> inner_engine_situations();
std::span<const Situation> piece_situations();
std::span<const Situation> told_history_situations();
std::span<const Situation> read_whole_situations();
std::vector<const Situation*> all_situations();

struct Seen {
  const Situation* situation;
  Evidence evidence;
};
// The situations with evidence, the strongest first.
std::vector<Seen> seen_situations(const CaseView& view);

// A server's weights alone are larger than its device: no share of the device changes that.
bool weights_exceed_the_device(const std::vector<Seen>& seen);

// Adds their advice to the findings: a remedy that a rule offers already gets their evidence and text.
void advise(const CaseView& view, const std::vector<Seen>& seen, Findings& findings);

}  // namespace headroom::doctor
