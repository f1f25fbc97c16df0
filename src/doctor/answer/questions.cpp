#include "doctor/answer/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "base/error.h"
#include "doctor/answer/job_model.h"
#include "doctor/config/defaults.h"
#include "doctor/remedies/case_view.h"

namespace headroom::doctor {
namespace {

constexpr size_t kMost = 3;

bool of_own_training(const CaseView& view) {
  return view.training() && view.pool() == Pool::device && !view.foreign_framework();
}

bool model_open(const Request&, const CaseView& view) { return view.has_job() && !view.shape(); }
bool gpu_open(const Request&, const CaseView& view) {
  return view.has_job() && view.pool() == Pool::device && !view.balance().limit;
}
bool batch_open(const Request& request, const CaseView& view) {
  if (request.micro_batch || !of_own_training(view) || (!view.has_job() && !view.message())) return false;
  if (!view.reinforcement_library().empty()) return false;  // it has several batch sizes under other names
  const BatchSettings& batch = view.job().batch;
  return !batch.micro && !batch.global && !(view.has_job() && job_defaults(view.job()).micro_batch.value);
}
bool length_open(const Request& request, const CaseView& view) {
  if (request.sequence || !of_own_training(view) || !view.has_job() || !view.shape()) return false;
  return !effective_sequence(view.job()) && !(view.shape()->encoder_only && view.shape()->vocab == 0);
}
bool torch_open(const Request& request, const CaseView& view) {
  return request.torch.empty() && view.message() && !view.serving() && view.caching_allocator();
}

int64_t positive_number(const Question& question, const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 9 &&
                      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const int64_t value = digits ? std::stoll(text) : 0;
  if (value <= 0)
    throw Error(ErrorKind::usage, fmt::format("{} {}: not a whole number from 1 on", question.option, text),
                "such as " + question.example);
  return value;
}

void give_model(Request& request, const Question&, const std::string& text) {
  if (!std::isdigit(static_cast<unsigned char>(text.front()))) {
    request.model = text;
    return;
  }
  parse_parameters(text);
  request.parameters = text;
}
void give_gpu(Request& request, const Question&, const std::string& text) { request.gpu = text; }
void give_batch(Request& request, const Question& question, const std::string& text) {
  request.micro_batch = positive_number(question, text);
}
void give_length(Request& request, const Question& question, const std::string& text) {
  request.sequence = positive_number(question, text);
}
void give_torch(Request& request, const Question&, const std::string& text) {
  parse_version(text);
  request.torch = text;
}

struct Fact {
  const char *text, *option, *example;
  const char *small, *large;  // the ends of its usual range
  bool (*open)(const Request&, const CaseView&);
  void (*give)(Request&, const Question&, const std::string&);
};

// When two facts decide equally, the first of this list is asked first.
constexpr Fact kFacts[] = {
    {"Which model, or of how many parameters?", "--model", "Qwen/Qwen2.5-7B or 7B", "1B", "70B", model_open,
     give_model},
    {"Which GPU, or how much memory does it have?", "--gpu", "4090 or 24GiB", "12GiB", "141GiB", gpu_open, give_gpu},
    {"How many samples per device and step?", "--micro-batch-size", "4", "1", "32", batch_open, give_batch},
    {"How many tokens does the longest sample have?", "--max-seq-length", "2048", "512", "16384", length_open,
     give_length},
    {"Which version of PyTorch?", "--torch", "2.6", "1.13", "2.9", torch_open, give_torch},
};

Question question_of(const Fact& fact) { return {fact.text, fact.option, fact.example, false}; }

std::string first_remedy(const Diagnosis& diagnosis) {
  if (!diagnosis.proposed_set().empty()) return fmt::format("{}", fmt::join(diagnosis.proposed_set(), "+"));
  return diagnosis.remedies.empty() ? "" : diagnosis.remedies.front().name;
}

// What the answer says about fitting, as a text to compare.
std::string said_to_fit(const Diagnosis& diagnosis) {
  return fmt::format("{} {} {}", diagnosis.fits ? (*diagnosis.fits ? "yes" : "no") : "open",
                     diagnosis.smallest_fitting_set.size(), diagnosis.likely_set.size());
}

}  // namespace

std::vector<Question> deciding_questions(const Request& request, const Case& incident, const Diagnosis& diagnosis,
                                         const Rediagnose& rediagnose) {
  std::vector<Question> first, fitting;
  if (request.which_gpu) return first;
  const CaseView view(incident, [&](const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu) {
    return estimate(job, shape, gpu, incident.software);
  });
  for (const Fact& fact : kFacts) {
    if (first.size() == kMost) break;
    if (!fact.open(request, view)) continue;
    Question question = question_of(fact);
    bool fits = false;
    for (const char* end : {fact.small, fact.large}) {
      const Diagnosis then = rediagnose(with_answer(request, question, end));
      question.first = first_remedy(then) != first_remedy(diagnosis);
      if (question.first) break;  // each end costs a diagnosis
      fits = fits || said_to_fit(then) != said_to_fit(diagnosis);
    }
    if (question.first || fits) (question.first ? first : fitting).push_back(question);
  }
  first.insert(first.end(), fitting.begin(), fitting.end());
  if (first.size() > kMost) first.resize(kMost);
  return first;
}

Request with_answer(Request request, const Question& question, const std::string& text) {
  for (const Fact& fact : kFacts)
    if (question.option == fact.option && !text.empty()) fact.give(request, question, text);
  return request;
}

Version parse_version(const std::string& text) {
  Version version;
  int read = 0;
  if (std::sscanf(text.c_str(), "%3d.%3d%n", &version.major, &version.minor, &read) < 2 || version.major < 0 ||
      version.minor < 0 || read == 0)
    throw Error(ErrorKind::usage, fmt::format("--torch {} is not a version", text), "write its first two numbers: 2.6");
  return version;
}

}  // namespace headroom::doctor
