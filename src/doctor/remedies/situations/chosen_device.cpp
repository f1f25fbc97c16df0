// Which devices a program uses: another one than was meant, several by itself, or more of them than before.
#include <fmt/format.h>

#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool any_device(const CaseView& view) {
  return view.pool() == Pool::device && !view.has_job() && view.reinforcement_library().empty();
}
bool training_by_itself(const CaseView& view) {
  return training_on_device(view) && !view.serving() && !view.zero() && !view.fsdp();
}
bool of_processes(const CaseView& view) {
  return training_on_device(view) && !view.has_job() && view.reinforcement_library().empty();
}

constexpr std::string_view kChooses =
    "cuda_visible_devices|set_device|specific gpu|specified gpu|specify gpu|specify the gpu|specify which gpu|"
    "choose gpu|choose the gpu|choose which gpu|select gpu|select the gpu|assign gpu|assign the gpu|assign specific|"
    "gpu i set|gpu i chose|gpu i want|gpu that i set|指定gpu|指定显卡|指定了gpu|指定第|选择gpu|使用第|号gpu|号卡|"
    "gpuを指定|使うgpu";
constexpr std::string_view kOnAnother =
    "still use|still run|still go|still on gpu|still say|always use|always run|always on|instead of gpu|but gpu 0|"
    "but it uses|uses gpu 0|on gpu 0|on gpu0|only uses gpu 0|free gpu|gpu is free|gpus are free|the empty ones|"
    "is empty|is idle|not work out|no effect|is ignored|还是报错说0|还是0号|还是用|仍然用|仍然使用|还在用0|空闲|"
    "不生效|没有生效|没生效|不起作用|0号gpu内存|0番のgpu|gpu 0が使|gpu0が使";

// People's sentences, not the message, a frame or a command.
bool of_a_person(std::string_view sentence) {
  return any_word(sentence, "file \"|tried to allocate|total capacity|python |python3 |torchrun |deepspeed ").empty();
}

// "I set CUDA_VISIBLE_DEVICES to 2, and it still uses GPU 0": a choice, and another device, in sentences of the post.
Evidence another_than_meant(const CaseView& view) {
  std::string_view chooses, another;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    if (!of_a_person(sentence)) return false;
    if (chooses.empty()) chooses = any_word(sentence, kChooses);
    if (another.empty()) another = any_word(sentence, kOnAnother);
    return !chooses.empty() && !another.empty();
  });
  if (chooses.empty() || another.empty()) return {};
  return {0.92, fmt::format("`{}` and `{}` in the log", chooses, another)};
}

constexpr std::string_view kMoreDevices =
    "increase the number of gpu|increase the number of graphics|increase the number of card|increasing the number of "
    "gpu|increase the gpu count|with more gpus|when using more gpus|when i use more gpus|adding gpus|add more gpus|"
    "adding a gpu|adding more gpus|增加显卡|增加gpu|加了一张卡|加卡|卡数增加|gpuを増や|gpu数を増や";
Evidence more_than_before(const CaseView& view) {
  const std::string_view more = any_word(beginning(view), kMoreDevices);
  return more.empty() ? Evidence{} : Evidence{0.83, fmt::format("`{}` in the log", more)};
}

// A device that is hardly used, by the post, and a message without figures: another one may have been full.
Evidence little_is_used(const CaseView& view) {
  constexpr std::string_view kLittle =
      "占用却很低|占用很低|占用不高|占用率很低|占用却不高|显存还有很多|显存还剩很多|显存还很多|显存充足|"
      "usage is low|usage is very low|usage stays low|barely used|hardly used|mostly free|mostly empty|almost empty|"
      "plenty of memory|plenty of vram|plenty of gpu memory|plenty of free|lots of free memory|使用量は少な|空きがあ";
  constexpr std::string_view kOfADevice = "gpu|vram|显存|cuda|card$|memory|メモリ|占用";
  const MessageFigures& f = view.figures();
  if (f.free || f.capacity || f.allocated) return {};
  std::string_view little;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    if (!any_word(sentence, kOfADevice).empty()) little = affirmed_word(sentence, kLittle);
    return !little.empty();
  });
  return little.empty() ? Evidence{} : Evidence{0.86, fmt::format("`{}` in the post", little)};
}

constexpr Situation kSituations[] = {
    {"another_device_than_meant",
     "by the post the program uses another device than the one that was meant: a choice in code comes too late once "
     "the driver has started, and an option of the program may make its own",
     any_device,
     {},
     {{"end-other-processes",
       "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=<number in nvidia-smi> before the command, in the same line "
       "(the program calls it 0 then), and no other choice in its options; nvidia-smi: which one is free?"},
      {"map-location",
       "torch.cuda.set_device(<number>) before anything else, torch.load(..., map_location=\"cpu\"): else a context or "
       "a checkpoint lies on the first GPU"}},
     another_than_meant},
    {"little_of_the_device_is_used",
     "by the post the device is hardly used: the process may be on another one, all processes on the first, or the "
     "peak too short to be seen",
     any_device,
     {},
     {{"end-other-processes",
       "nvidia-smi while it fails (watch -n 0.2): which GPU is full? Then export CUDA_VISIBLE_DEVICES=<free ones>, "
       "such "
       "as 0,1,2,3, before the launcher (DeepSpeed: --include localhost:0,1)"},
      {"micro-batch"}},
     little_is_used},
    {"data_parallel_by_itself",
     "the program sees several devices and divides each batch among them by DataParallel, which gathers all on the "
     "first",
     training_by_itself,
     {{log, 0.9, "was asked to gather along dimension"}},
     {{"ddp",
       "CUDA_VISIBLE_DEVICES=0 before the command: one device; for several torchrun --nproc_per_node=<devices> "
       "(DistributedDataParallel)"},
      {"micro-batch"},
      {"checkpointing"}}},
    {"more_devices_than_before",
     "by the post fewer devices went well: every further process opens the first device too, unless it is told not "
     "to, and a batch or a buffer may grow with their number",
     of_processes,
     {},
     {{"map-location",
       "torch.cuda.set_device(local_rank) before anything else in each process: no context of others on the first "
       "GPU"},
      {"micro-batch", "the batch of each device as it was: does the program multiply or divide it by their number?"},
      {"other-version", "a newer release of the program and of its launcher: compare nvidia-smi of both runs"}},
     more_than_before},
};

}  // namespace

std::span<const Situation> chosen_device_situations() { return kSituations; }

}  // namespace headroom::doctor
