// Releases of a program, its libraries and its extensions as the cause.
#include "doctor/remedies/situations/releases.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_growth.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool any_memory(const CaseView& view) { return !view.has_job() && view.pool() != Pool::shared_memory; }
bool of_another_framework(const CaseView& view) { return view.pool() == Pool::device && view.foreign_framework(); }

// "Tried to allocate 17179869184.00 GiB": more bytes than a message's figures can hold.
std::string_view size_beyond_any_count(const CaseView& view) {
  constexpr std::string_view kAsks = "tried to allocate ";
  constexpr double kBeyond = 8e9;  // GiB, of 2^63 bytes
  const std::string_view log = view.incident().log_text;
  const size_t at = log.find(kAsks), begin = at + kAsks.size();
  if (at == std::string_view::npos) return {};
  const size_t end = log.find(" gib", begin);
  if (end == std::string_view::npos || end > begin + 24) return {};
  const std::string number(log.substr(begin, end - begin));
  return std::strtod(number.c_str(), nullptr) > kBeyond ? log.substr(begin, end + 4 - begin) : std::string_view();
}

Evidence asks_for_no_real_size(const CaseView& view) {
  if (!asks_for_a_wrong_size(view)) return {};
  if (!view.figures().requested) return {0.98, fmt::format("one request of {}", size_beyond_any_count(view))};
  return {0.98, fmt::format("one request of {}", figure(*view.figures().requested))};
}

// A person's sentence that says that it came with a release. A list of versions alone shows nothing.
Evidence came_with_a_release(const CaseView& view) {
  constexpr std::string_view kReleases =
      "was upgraded to|were upgraded to|i upgraded to|upgrading to|upgraded from|after upgrading|after the "
      "upgrade|after updating|after an update|after the update|since upgrading|since the update|since the "
      "upgrade|since version|since release|since v0|since v1|since v2|since v3|since v4|recent update|latest update|"
      "newest update|since recent|recent commit|latest commit|older version works|older version does|previous version "
      "works|previous version does|old version works|old version does|only versions up to|caused by the version|caused "
      "by the transformers version|caused by the pytorch version|caused by the torch version|caused by the new "
      "version|works with the old version|versions up to|升级到|升级后|"
      "更新后|更新之后|更新以后|升级之后|升级以后|アップデート後";
  // A weaker sign: somebody only says what is used.
  constexpr std::string_view kNewest =
      "with the latest version|with the newest version|with the latest release|with the new "
      "version|用最新版本|最新版で";
  constexpr std::string_view kOthers =
      "upgrading to windows|upgraded to windows|upgrading to ubuntu|upgraded to ubuntu|upgrading to linux|after "
      "upgrading the gpu|after upgrading my gpu|upgrading to a larger|upgraded to a larger|after upgrading the "
      "ram|upgrading to more|should consider upgrading";
  constexpr std::string_view kHelped = "solved|fixed|resolved|helped|works now|goes away|解决了|直りました";
  const std::string_view text = beginning(view);
  if (const std::string_view bound = any_word(text.substr(0, text.find('\n')), "version >|v >=|v>=|v >");
      !bound.empty())
    return {0.8, fmt::format("`{}` in the title", bound)};
  Evidence found;
  each_sentence(text, [&](std::string_view sentence) {
    const bool code = sentence.find("file \"") != std::string_view::npos;
    if (code || sentence.find('?') != std::string_view::npos || !affirmed_word(sentence, kHelped).empty()) return false;
    const std::string own = without_words(sentence, kOthers);
    const std::string_view word = any_word(own, kReleases), newest = any_word(own, kNewest);
    if (!word.empty()) found = {0.8, fmt::format("`{}` in the post", word)};
    if (word.empty() && !newest.empty() && found.weight == 0) found = {0.73, fmt::format("`{}` in the post", newest)};
    return !word.empty();
  });
  return found;
}

// Host memory that fills over epochs, beside libraries of before 2021: some of them kept it.
Evidence old_libraries(const CaseView& view) {
  constexpr std::string_view kOld =
      "cuda 8|cuda 9|cuda 10|cuda8|cuda9|cuda10|cuda version: 9|cuda version: 10|cuda-9|cuda-10|9.0.176|9.2.148|"
      "10.0.130|10.1.243|10.2.89|cudnn 6|cudnn 7|cudnn7|7.6.5|7.6.3|7.4.|torch 0.|torch 1.|torch1.|pytorch 0.|"
      "pytorch 1.|pytorch1.|torch==1.|pytorch==1.";
  const std::string& log = view.incident().log_text;
  const std::string_view old = view.log_says(kOld), epochs = told_after_epochs(log);
  if (old.empty() || epochs.empty() || only_first_steps(epochs)) return {};
  return {0.76, fmt::format("`{}` and `{}` in the log", epochs, old)};
}

// Adapters on a base in few bits that is a small part of the device, one row at a time: it should fit.
Evidence should_fit(const CaseView& view) {
  constexpr std::string_view kFewBits = "4bit|4-bit|4 bit|8bit|8-bit|8 bit|qlora|bnb";
  constexpr double kShare = 0.25;
  const std::string& log = view.incident().log_text;
  if (view.log_says("lora|peft").empty() || view.log_says(kFewBits).empty()) return {};
  if (!batch_of_one(log) && !smallest_batch_failed(log)) return {};
  const std::optional<ModelWords> model = model_in_words(log);
  const std::optional<int64_t> capacity = view.figures().capacity;
  const std::optional<double> device = capacity ? std::optional(static_cast<double>(*capacity)) : device_in_words(log);
  if (!model || !device || model->parameters > kShare * *device) return {};  // a byte per parameter
  return {0.9, fmt::format("{} parameters in few bits with adapters, one row at a time, on {}", model->written,
                           figure(static_cast<int64_t>(*device)))};
}
bool trains_adapters(const CaseView& view) { return training_on_device(view) && !view.has_job(); }

constexpr std::string_view kReentrant =
    "gradient_checkpointing_kwargs={\"use_reentrant\": False}, or model.enable_input_require_grads() before the "
    "adapters are added: then checkpointing works with a frozen base";

constexpr Situation kSituations[] = {
    {"size_that_was_never_computed",
     "no job asks for that much: the size comes from a value that was never set, overflowed or was read wrongly, often "
     "by an extension that was compiled for another CUDA or PyTorch",
     on_device,
     {},
     {{"other-version",
       "the extension built again with the CUDA version of PyTorch (nvcc --version as torch.version.cuda; an older "
       "toolkit if the newest fails): remove its build folder, pip install --no-build-isolation --force-reinstall "
       "<it>"},
      {"find-sample",
       "print what goes into the call that fails: shapes, negative numbers, NaN, indices beyond the end "
       "(CUDA_LAUNCH_BLOCKING=1 for the right line)"}},
     asks_for_no_real_size},
    {"size_that_was_never_computed_elsewhere",
     "no job asks for that much: the size comes from a value that was never set, overflowed or was read wrongly",
     of_another_framework,
     {},
     {{"other-version",
       "another release of the program, with the driver and CUDA that it was built for; an exported model made again"},
      {"find-sample", "print the shapes and types of the inputs: a negative or unset size, an input that is empty"}},
     asks_for_no_real_size},
    {"came_with_a_release",
     "by the post it came with a release of the program or a library: what that does differently takes the memory",
     any_memory,
     {},
     {{"other-version",
       "the release before (pip install NAME==<version>), or a newer one in which it is fixed: its issues and changes "
       "tell"}},
     came_with_a_release},
    {"old_libraries_on_the_host",
     "old builds of PyTorch, CUDA and cuDNN kept host memory from step to step in some networks",
     host_ran_out,
     {},
     {{"other-version", "newer PyTorch with its own CUDA and cuDNN: old builds leaked host memory"}},
     old_libraries},
    {"small_model_that_should_fit",
     "adapters on a small base in few bits, one row at a time: this should fit, so a library keeps more than it "
     "should, or the base is loaded in 32 bits all the same",
     trains_adapters,
     {},
     {{"other-version",
       "a new environment with current transformers, trl, peft, bitsandbytes and accelerate: releases between had such "
       "faults"},
      {"checkpointing", kReentrant},
      {"sequence-length", "shorter texts: max_length=512 (max_seq_length), without packing"}},
     should_fit},
    {"checkpointing_of_a_frozen_base",
     "checkpointing of a frozen base needs an input that wants gradients, else nothing is trained: that error has a "
     "cure",
     training_on_device,
     {{log, 0.92, "element 0 of tensors does not require grad|none of the inputs have requires_grad"}},
     {{"checkpointing", kReentrant}}},
};

}  // namespace

bool asks_for_a_wrong_size(const CaseView& view) {
  constexpr int64_t kNone = int64_t{1} << 50;  // a pebibyte
  if (view.figures().requested) return *view.figures().requested >= kNone;
  return !size_beyond_any_count(view).empty();
}

std::span<const Situation> release_situations() { return kSituations; }

}  // namespace headroom::doctor
