#include "doctor/answer/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/find_text.h"
#include "doctor/answer/ask_again.h"
#include "doctor/answer/emit.h"
#include "doctor/answer/headroom_answer.h"
#include "doctor/answer/job_model.h"
#include "doctor/answer/log_facts.h"
#include "doctor/answer/posted_config.h"
#include "doctor/answer/questions.h"
#include "doctor/answer/words.h"
#include "doctor/config/setting.h"
#include "doctor/remedies/balance.h"
#include "doctor/remedies/case_view.h"
#include "doctor/remedies/figures.h"
#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/log_job.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

// Values given on the command line override those of the files.
void apply_overrides(const Request& request, Job& job) {
  if (request.gpus) job.devices.gpus = request.gpus;
  if (request.micro_batch) job.batch.micro = request.micro_batch;
  if (request.sequence) {
    (job.task == Task::serve ? job.serving.max_model_len : job.batch.sequence) = request.sequence;
    job.keys.origins["sequence"] = Origin{"command line", 0, "--sequence"};
  }
}

// Trainers whose names in a log show whose options a person has; their defaults stand in for what is not said.
bool trainer_of_log(System system) { return system == System::litgpt || system == System::llamafactory; }

// The job when only --model is given: what the text quotes, or the server or trainer that the log shows, else a PyTorch
// script with the usual settings.
Job bare_job(const Request& request, const Case& incident) {
  const std::string_view reinforcement = reinforcement_of(incident.log_text);
  const Job shown = job_of_log(incident, main_message(incident), reinforcement, story_of(incident).task);
  Job job;
  if (incident.quoted) {
    job = shown;
  } else {
    job.system = server_system(shown.system) || trainer_of_log(shown.system) ? shown.system : System::pytorch_script;
    job.task = shown.task;
  }
  job.model = request.model;
  return job;
}

// The note for an input that was read as plain text.
std::string why_unread(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return fmt::format("read as text: {}", e.what());
  }
}

// The host's memory limit: given on the command line, or granted by the scheduler.
std::optional<int64_t> host_limit(const Request& request, const Case& incident) {
  if (request.host_bytes) return request.host_bytes;
  const JobResources& job = incident.resources.job;
  if (job.memory_requested_bytes) return job.memory_requested_bytes;
  if (job.memory_requested_per_cpu_bytes && job.cpus) return *job.memory_requested_per_cpu_bytes * *job.cpus;
  if (incident.job && incident.job->devices.grant.host_memory_bytes)
    return incident.job->devices.grant.host_memory_bytes;
  return std::nullopt;
}

// The device that a person names beside a command, where nothing prints one: "on one A100 80GB".
void take_told_gpu(Case& incident) {
  constexpr std::string_view kElsewhere =
      "works on|worked on|works fine on|runs on|fine on|fits on|another machine|other machine|other gpu|larger gpu|"
      "needs at least|换成|换到";
  const Message* message = main_message(incident);
  if (incident.gpu || !incident.job || (message && message->capacity_bytes)) return;
  if (!any_word(incident.log_text, kElsewhere).empty()) return;
  incident.gpu = gpu_in_words(incident.log_text);
  incident.gpu_is_told = incident.gpu.has_value();
}

void fill_capacity(const Request& request, const std::optional<int64_t>& sized, Case& incident) {
  if (pool_of(incident) != Pool::device) {
    incident.capacity_bytes = host_limit(request, incident);
    return;
  }
  incident.capacity_bytes = request.capacity_bytes ? request.capacity_bytes : sized;
  const Message* message = main_message(incident);
  if (!incident.capacity_bytes && message && message->capacity_bytes) incident.capacity_bytes = message->capacity_bytes;
}

// The request that failed in a snapshot, as if PyTorch had printed a message for it.
Message message_of(const DeviceAnalysis& device) {
  const OutOfMemoryEvent& event = device.failures.back();
  Message message;
  message.text = fmt::format("snapshot: {} asked at {}", figure(event.requested_bytes), event.place);
  message.framework = "pytorch-cuda";
  message.format = "snapshot";
  message.requested_bytes = event.requested_bytes;
  message.free_bytes = event.device_free_bytes;
  message.allocated_bytes = event.allocated_bytes;
  message.reserved_bytes = event.reserved_bytes;
  message.reserved_unallocated_bytes = std::max<int64_t>(0, event.reserved_bytes - event.allocated_bytes);
  message.device_index = static_cast<int>(device.device);
  return message;
}

// Where no log has a message, the failures in snapshots take its place.
void add_failures(const Intake& intake, Case& incident) {
  if (!incident.messages.empty()) return;
  for (const SnapshotAnalysis& snapshot : intake.snapshots)
    for (const DeviceAnalysis& device : snapshot.devices)
      if (!device.failures.empty()) incident.messages.push_back(message_of(device));
}

// The smallest set as a patch, or the reason why the file cannot be edited.
void add_patch(const Intake& intake, Report& report) {
  if (!intake.config || report.diagnosis.proposed_set().empty()) return;
  try {
    const Emitted emitted = emit_patch(report.diagnosis, *intake.config);
    report.patch = emitted.diff;
    report.by_hand = emitted.by_hand;
  } catch (const Error& error) {
    report.notes.push_back(fmt::format("no patch: {} ({})", error.what(), error.remedy()));
  }
}

// In which stage the measured peak lies, and what that means for the batch.
std::string words_of_stage(const std::string& stage) {
  if (stage == "start") return ". The peak is before the first step: loading decides, not the batch";
  if (stage == "forward") return ". The peak is in the forward pass or the loss: outputs decide";
  if (stage == "backward") return ". The peak is in the backward pass";
  if (stage == "optimizer_step") return ". The peak is in the optimizer's step: states decide, not the batch";
  return {};
}

void add_probe(const Request& request, const Intake& intake, Report& report) {
  if (intake.probe.empty()) return;
  const ProbeFit fit = fit_probe(intake.probe);
  std::string text =
      fmt::format("measured: {} whatever the batch, {} per sample", figure(static_cast<int64_t>(fit.fixed_bytes)),
                  figure(static_cast<int64_t>(fit.per_sample_bytes)));
  std::optional<int64_t> capacity = report.incident.capacity_bytes;
  if (!capacity && report.incident.gpu) capacity = report.incident.gpu->memory_bytes;
  if (capacity) {
    const int64_t batch = largest_batch(fit, *capacity);
    text += batch > 0 ? fmt::format("; batch {} is the largest that fits {}", batch, figure(*capacity))
                      : fmt::format("; not even one sample fits {}", figure(*capacity));
  } else {
    text += "; give --gpu NAME or --gpu 24GiB for the largest batch";
  }
  report.measured = text + words_of_stage(stage_of_peak(intake.probe));
}

// A script may set more than the code that a text quotes.
bool quotes_code(const Intake& intake) {
  return intake.config_is_quoted &&
         std::any_of(intake.config->sources.begin(), intake.config->sources.end(),
                     [](const SourceRead& source) { return source.kind == SourceKind::python; });
}

// Whether the weights of the job are more than the device held when a step failed: then the quotation leaves out what
// makes them smaller.
bool weights_contradict(const Case& incident) {
  const Message* message = main_message(incident);
  if (!message || !incident.estimate || pool_of(incident) != Pool::device) return false;
  constexpr std::string_view kLoaded[] = {"forward",        "backward",       "training",
                                          "optimizer_step", "optimizer_init", "eval"};
  if (std::find(std::begin(kLoaded), std::end(kLoaded), message->phase) == std::end(kLoaded)) return false;
  int64_t weights = 0;
  for (const Term& term : incident.estimate->terms) weights += term.name == "weights" ? term.bytes : 0;
  const std::optional<int64_t> held = message->allocated_bytes ? message->allocated_bytes : message->capacity_bytes;
  return held && weights > *held;
}

// Leaves of a quoted job what it states, without an estimate.
void doubt_quotation(Case& incident) {
  if (!incident.job_is_quoted || !weights_contradict(incident)) return;
  incident.quoted = std::move(incident.job);
  incident.job.reset();
  incident.job_is_quoted = false;
  incident.shape.reset();
  incident.estimate.reset();
}

// Puts everything that was read into a case.
Case case_of_inputs(const Intake& intake) {
  Case incident;
  incident.messages = intake.log.messages;
  add_failures(intake, incident);
  incident.growth = intake.log.growth;
  incident.resources = intake.log.resources;
  incident.log_text = lower(intake.log.excerpt);
  const KnownText known(incident.log_text);
  incident.setup_text = intake.setup;
  take_words(incident);
  if (intake.quoted) incident.quoted = intake.quoted->job;
  incident.job_is_quoted = intake.config_is_quoted;
  incident.story = read_story(incident.log_text);
  return incident;
}

// Adds what the words of the log say of the job; a job of which they say the trainer or the length is not known whole.
void take_facts(const Intake& intake, Case& incident) {
  Job& job = *incident.job;
  const bool had_length = job.batch.sequence.has_value();
  if (!intake.config || quotes_code(intake)) take_facts_of_log(incident.log_text, job);
  if (intake.config) take_facts_beside_a_file(incident.log_text, job);
  const bool by_words = !intake.config && trainer_of_log(job.system);
  if (by_words || (!had_length && job.batch.sequence)) incident.job_is_quoted = true;
}

// Adds what was given to the case of the inputs.
Case case_of(const Request& request, const Intake& intake, Case incident, std::vector<std::string>& notes) {
  const KnownText known(incident.log_text);
  if (!request.torch.empty()) incident.software.torch = parse_version(request.torch);
  if (intake.config)
    incident.job = intake.config->job;
  else if (!intake.unread && (!request.model.empty() || !request.parameters.empty()))
    incident.job = bare_job(request, incident);
  if (incident.job) take_facts(intake, incident);
  if (incident.job && !incident.job->batch.micro && batch_of_one(incident.log_text)) incident.job->batch.micro = 1;
  if (incident.job) apply_overrides(request, *incident.job);
  if (incident.job && !intake.config && trainer_of_log(incident.job->system)) take_facts_of_the_trainer(*incident.job);
  if (!incident.job)
    incident.micro_batch =
        request.micro_batch ? request.micro_batch : posted_value(incident.log_text, "micro_batch_size");
  incident.shape = choose_shape(request, intake.config, notes);
  std::optional<int64_t> sized;
  incident.gpu = choose_gpu(request, intake.config, intake.log, sized);
  if (!sized) take_told_gpu(incident);
  if (incident.job && incident.shape)
    incident.estimate = estimate(*incident.job, *incident.shape, incident.gpu, incident.software);
  doubt_quotation(incident);
  fill_capacity(request, sized, incident);
  return incident;
}

void refuse_nothing(const Request& request, const Intake& intake) {
  const bool brought = intake.has_log || intake.config || intake.unread || !intake.snapshots.empty() ||
                       !intake.probe.empty() || !intake.setup.empty();
  if (!brought && request.model.empty() && request.parameters.empty())
    throw Error(ErrorKind::usage, "nothing to look at",
                "give a log, --config FILE, --model NAME, or a command line after --");
}

void add_gpus(const Request& request, Report& report) {
  const Case& incident = report.incident;
  if (!request.which_gpu || !incident.job || !incident.shape) return;
  report.gpus = rank_gpus(*incident.job, *incident.shape,
                          [&](const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu) {
                            return estimate(job, shape, gpu, incident.software);
                          });
}

}  // namespace

Answer answer(const Request& request, const Intake& intake) {
  refuse_nothing(request, intake);
  Answer result;
  Report& report = result.report;
  const Case& incident = report.incident;
  if (intake.config) report.notes = intake.config->notes;
  if (!intake.missing.empty())
    report.give = fmt::format("--config {}: the command in the log names it", intake.missing.front());
  const Case inputs = case_of_inputs(intake);
  report.incident = case_of(request, intake, inputs, report.notes);
  report.ask = ask_for_model(request, incident);
  report.diagnosis = diagnose(incident);
  // Report the error if the unreadable file told nothing else either.
  if (intake.unread && incident.messages.empty() && report.diagnosis.causes.empty())
    std::rethrow_exception(intake.unread);
  report.questions = deciding_questions(request, incident, report.diagnosis, [&](const Request& other) {
    std::vector<std::string> notes;
    return diagnose(case_of(other, intake, inputs, notes));
  });
  if (intake.unread) report.notes.push_back(why_unread(intake.unread));
  add_gpus(request, report);
  if (incident.job && incident.job->system != System::unknown) report.system = system_name(incident.job->system);
  report.sources = intake.sources;
  if (intake.quoted || intake.config_is_quoted)
    report.quoted = settings_by_quotation(intake.quoted ? *intake.quoted : *intake.config);
  for (const std::string& line : report.quoted) report.notes.push_back("from " + line);
  report.snapshots = intake.snapshots;
  if (intake.log.messages_dropped > 0)
    report.notes.push_back(fmt::format("{} further different messages were passed over", intake.log.messages_dropped));
  report.looked_for_message = intake.has_log;
  add_probe(request, intake, report);
  add_patch(intake, report);
  report.headroom = headroom_answer(request, incident, intake.config, report.diagnosis.language_model);
  result.config = intake.config;
  return result;
}

Answer answer(const Request& request, std::istream& standard_input) {
  return answer(request, read_inputs(request, standard_input));
}

}  // namespace headroom::doctor
