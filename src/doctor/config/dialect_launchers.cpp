// Commands that start a job: torchrun, the deepspeed command, tune run, srun, #SBATCH lines.
#include <algorithm>
#include <cmath>

#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

// "gpu:a100:4", "gpu:2", "a100:4", "4", "nvidia.com/gpu=2"
std::string_view set_slurm_gpus(Draft& draft, const Setting& setting, const KeyRule& rule) {
  std::vector<std::string> parts = split_words(setting.text, ":=");
  if (parts.empty()) return "not a number of GPUs";
  int64_t count = 1;
  if (const auto number = whole_number(parts.back())) {
    count = *number;
    parts.pop_back();
  }
  if (count < 1) return "not a number of GPUs";
  if (!parts.empty() && (parts.front() == "gpu" || parts.front() == "gres/gpu")) parts.erase(parts.begin());
  if (!parts.empty()) draft.set(draft.job.devices.gpu, parts.front(), "gpu", setting.origin);
  Setting number = setting;
  number.text = std::to_string(count);
  draft.facts[rule.field == "gpus" ? "slurm.gpus" : "slurm.gpus_per_" + std::string(rule.field.substr(9))] = number;
  return {};
}

// "64G", "128000M", "4000" (MB): Slurm counts in powers of 1024.
std::string_view set_slurm_memory(Draft& draft, const Setting& setting, const KeyRule& rule) {
  std::string text = setting.text;
  double factor = 1048576.0;
  if (!text.empty() && (text.back() == 'B' || text.back() == 'b')) text.pop_back();
  if (!text.empty()) {
    const char unit = lower(text).back();
    const size_t power = std::string_view("kmgt").find(unit);
    if (power != std::string_view::npos) {
      factor = std::pow(1024.0, static_cast<double>(power + 1));
      text.pop_back();
    }
  }
  const std::optional<double> value = real_number(text);
  if (!value || *value < 0 || *value * factor > 9e15) return "no amount of memory";
  Setting bytes = setting;
  bytes.text = std::to_string(static_cast<int64_t>(*value * factor));
  draft.facts["slurm." + std::string(rule.field)] = bytes;
  return {};
}

std::string_view set_nodes(Draft& draft, const Setting& setting, const KeyRule&) {
  // "2", "1-4" (a range), torchrun's "1:4": the minimum is certain
  const std::vector<std::string> ends = split_words(setting.text, "-:");
  const std::optional<int64_t> count = ends.empty() ? std::nullopt : whole_number(ends.front());
  if (!count || *count < 1) return "not a number of nodes";
  draft.set(draft.job.devices.nodes, *count, "nodes", setting.origin);
  return {};
}

std::string_view set_text(Draft& draft, const Setting& setting, const KeyRule& rule) {
  (rule.field == "grant.partition" ? draft.job.devices.grant.partition : draft.job.devices.grant.time_limit) =
      setting.text;
  draft.job.keys.origins[std::string(rule.field)] = setting.origin;
  return {};
}

std::string_view set_per_node(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  if (word == "gpu" || word == "auto" || word == "cpu") return {};
  const std::optional<int64_t> count = whole_number(setting);
  if (!count || *count < 1) return "not a number of processes";
  draft.facts["launch.per_node"] = setting;
  return {};
}

constexpr KeyRule kRunRules[] = {
    {"nproc_per_node", set_per_node, "gpus"},  {"nproc", set_per_node, "gpus"}, {"num_gpus", set_per_node, "gpus"},
    {"include", set_extra, "extras.include"},  {"nnodes", set_nodes, "nodes"},  {"num_nodes", set_nodes, "nodes"},
    {"tp_size", set_count, "tensor_parallel"},
};
constexpr Irrelevant kRunIrrelevant[] = {
    {"how processes find each other",
     "node_rank rdzv_* rdzv_backend rdzv_endpoint rdzv_id rdzv_conf standalone master_addr master_port max_restarts "
     "monitor_interval start_method role module m no_python run_path log_dir redirects tee local_ranks_filter "
     "local_addr use_env hostfile exclude launcher launcher_args force_multi save_pid enable_each_rank_log no_ssh "
     "no_local_rank bind_cores_to_rank bind_core_list ssh_port elastic_training module autotuning verbose l q"},
};

void finish_launch(Draft& draft) {
  Job& job = draft.job;
  if (const Setting* per_node = draft.fact("launch.per_node")) {
    const int64_t count = whole_number(*per_node).value_or(1);
    const int64_t nodes = job.devices.nodes.value_or(1);
    if (count <= 1'000'000 && nodes <= 1'000'000) draft.set(job.devices.gpus, count * nodes, "gpus", per_node->origin);
  }
  if (job.devices.gpus.value_or(1) > 1 && job.task == Task::train && job.keys.origins.count("gpus"))
    draft.imply(job.parallel.sharding, Sharding::ddp, "sharding", job.keys.origins["gpus"]);
}

constexpr KeyRule kSlurmRules[] = {
    {"gres", set_slurm_gpus, "gpus_per_node"},
    {"gpus", set_slurm_gpus, "gpus"},
    {"gpus_per_node", set_slurm_gpus, "gpus_per_node"},
    {"gpus_per_task", set_slurm_gpus, "gpus_per_task"},
    {"nodes", set_nodes, "nodes"},
    {"mem", set_slurm_memory, "mem"},
    {"mem_per_cpu", set_slurm_memory, "mem_per_cpu"},
    {"mem_per_gpu", set_slurm_memory, "mem_per_gpu"},
    {"cpus_per_task", remember, "slurm.cpus"},
    {"cpus_per_gpu", remember, "slurm.cpus_per_gpu"},
    {"ntasks", remember, "slurm.tasks"},
    {"ntasks_per_node", remember, "slurm.tasks_per_node"},
    {"partition", set_text, "grant.partition"},
    {"time", set_text, "grant.time_limit"},
    {"constraint", set_extra, "extras.constraint"},
    {"exclusive", set_extra, "extras.exclusive"},
};
constexpr Irrelevant kSlurmIrrelevant[] = {
    {"names, places and order of jobs",
     "job_name output error account qos mail_type mail_user array dependency open_mode requeue no_requeue chdir "
     "export nodelist exclude reservation signal comment begin nice wait get_user_env threads_per_core hint switches "
     "gpu_bind cpu_bind distribution kill_on_bad_exit label unbuffered mpi tmp licenses wckey container* input verbose "
     "export_file propagate overlap exact jobid immediate pty ntasks_per_gpu"},
};
constexpr Renamed kSlurmRenamed[] = {
    {"n", "ntasks", ""}, {"N", "nodes", ""},      {"c", "cpus_per_task", ""}, {"p", "partition", ""},
    {"t", "time", ""},   {"J", "job_name", ""},   {"o", "output", ""},        {"e", "error", ""},
    {"G", "gpus", ""},   {"A", "account", ""},    {"C", "constraint", ""},    {"w", "nodelist", ""},
    {"q", "qos", ""},    {"D", "chdir", ""},      {"d", "dependency", ""},    {"a", "array", ""},
    {"l", "label", ""},  {"u", "unbuffered", ""}, {"x", "exclude", ""},
};

std::optional<int64_t> bounded(const Draft& draft, const char* name) {
  const std::optional<int64_t> value = draft.fact_number(name);
  return value && *value >= 1 && *value <= int64_t{1} << 50 ? value : std::nullopt;
}

void finish_slurm(Draft& draft) {
  Job& job = draft.job;
  const int64_t nodes = std::min<int64_t>(job.devices.nodes.value_or(1), 1'000'000);
  const auto take = [&](const char* fact, int64_t times) {
    const std::optional<int64_t> count = bounded(draft, fact);
    if (count && *count <= 1'000'000) draft.imply(job.devices.gpus, *count * times, "gpus", draft.fact(fact)->origin);
  };
  const int64_t tasks = std::min<int64_t>(bounded(draft, "slurm.tasks").value_or(nodes), 1'000'000);
  take("slurm.gpus", 1);
  take("slurm.gpus_per_node", nodes);
  take("slurm.gpus_per_task", tasks);
  job.devices.grant.cpus = bounded(draft, "slurm.cpus");
  job.devices.grant.tasks_per_node = bounded(draft, "slurm.tasks_per_node");
  const int64_t here =
      job.devices.grant.tasks_per_node.value_or(std::max<int64_t>(1, tasks / std::max<int64_t>(1, nodes)));
  if (const auto all = bounded(draft, "slurm.mem")) {
    job.devices.grant.host_memory_bytes = *all;
  } else if (const auto each = bounded(draft, "slurm.mem_per_cpu")) {
    const double bytes = static_cast<double>(*each) * static_cast<double>(job.devices.grant.cpus.value_or(1)) *
                         static_cast<double>(here);
    if (bytes < 9e15) job.devices.grant.host_memory_bytes = static_cast<int64_t>(bytes);
  } else if (const auto gpu = bounded(draft, "slurm.mem_per_gpu")) {
    const double bytes =
        static_cast<double>(*gpu) * static_cast<double>(job.devices.gpus.value_or(1)) / static_cast<double>(nodes);
    if (bytes < 9e15) job.devices.grant.host_memory_bytes = static_cast<int64_t>(bytes);
  }
  for (const char* fact : {"slurm.mem", "slurm.mem_per_cpu", "slurm.mem_per_gpu"})
    if (const Setting* setting = draft.fact(fact)) job.keys.origins["grant.host_memory_bytes"] = setting->origin;
  if (const Setting* cpus = draft.fact("slurm.cpus")) job.keys.origins["grant.cpus"] = cpus->origin;
}

constexpr Dialect kRun = {System::unknown, "launcher", kRunRules, kRunIrrelevant, {}, {}, nullptr, finish_launch};
constexpr Dialect kSlurm = {System::unknown, "Slurm", kSlurmRules, kSlurmIrrelevant,
                            kSlurmRenamed,   {},      nullptr,     finish_slurm};

}  // namespace

const Dialect& torchrun_dialect() { return kRun; }
const Dialect& slurm_dialect() { return kSlurm; }

}  // namespace headroom::doctor
