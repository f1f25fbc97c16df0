// Reinforcement learning that learns from what it stored: its replay memory.
#include <fmt/format.h>

#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool any_on_device(const CaseView& view) {
  return on_device(view) && !view.serving() && view.reinforcement_library().empty();
}

constexpr std::string_view kReplays =
    "replay buffer|replay memory|replay_buffer|replaybuffer|replaymemory|replay_memory|replay_size|replay size|"
    "experience replay|deep q learning|deep q-learning|dueling deep q|deep q network|deep "
    "q-network|经验回放|回放池|リプレイバッファ|リプレイメモリ";

// An algorithm that stores observations, by its name, beside an environment that gives them.
Evidence learns_from_what_it_stored(const CaseView& view) {
  constexpr std::string_view kAlgorithms = "dqn|ddqn|ddpg|td3$|soft actor|rainbow$|her$|hindsight|muzero|dreamer|sac$";
  constexpr std::string_view kEnvironments =
      "observation|env$|envs$|environment with|custom environment|gym$|gymnasium|gym.|atari|mujoco|episode|agent$";
  const std::string& log = view.incident().log_text;
  const std::string_view algorithm = any_word(log, kAlgorithms), environment = any_word(log, kEnvironments);
  if (algorithm.empty() || environment.empty()) return {};
  constexpr std::string_view kWordsToo = "her$|sac$";  // also a word and a folder
  const bool sure = any_word(kWordsToo, algorithm).empty() ||
                    !view.log_says("reinforcement|rl$|stable_baselines|sb3|gym|mujoco|atari").empty();
  return sure ? Evidence{0.92, fmt::format("`{}` and `{}` in the log", algorithm, environment)} : Evidence{};
}

constexpr Situation kSituations[] = {
    {"replay_of_a_learner",
     "the replay memory holds every observation until it is full: its size x that of an observation, and twice that "
     "where the next one is stored beside it",
     host_ran_out,
     {{either, 0.93, kReplays}},
     {{"lean-load",
       "a smaller replay memory: a tenth of its size (--replay_size, buffer_size, memory_size, size_in_transitions); "
       "images as uint8, each once (optimize_memory_usage=True)"},
      {"host-memory", "more host memory (RAM), or swap: it is read by chance, a part at a time"},
      {"more-swap", "the replay memory in a file: np.memmap, or episodes on the disk of which some are read"}},
     learns_from_what_it_stored},
    {"replay_on_the_device",
     "a replay memory on the device grows until it is full: its size x that of an observation",
     any_on_device,
     {{log, 0.86, "replay buffer|replay memory|replay_buffer|replaybuffer|replaymemory|replay_memory|经验回放"}},
     {{"detach-history",
       "the replay memory on the host: observations as uint8 arrays, .detach().cpu(); only a sampled batch to the GPU"},
      {"find-sample", "a smaller replay memory: a tenth of its size, each observation once"},
      {"micro-batch"}}},
};

}  // namespace

std::span<const Situation> replay_situations() { return kSituations; }

}  // namespace headroom::doctor
