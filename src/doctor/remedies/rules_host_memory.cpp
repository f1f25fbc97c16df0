// More host memory: how much, if it can be computed, and in the terms of whatever limits it (T43).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Who sets the limit.
enum class Grantor { slurm, kubernetes, docker, wsl, machine };

Grantor grantor_of(const CaseView& s) {
  const std::string_view framework = s.message() ? std::string_view(s.message()->framework) : std::string_view();
  const JobResources& job = s.incident().resources.job;
  if (framework == "slurm" || job.memory_requested_bytes || job.memory_requested_per_cpu_bytes ||
      !s.setup_says("#sbatch|srun ").empty())
    return Grantor::slurm;
  const bool docker = !s.log_says("failed to solve:|executor failed running|docker build|docker run").empty();
  if (docker && s.log_says("kubectl|kubelet|oomkilled|namespace").empty()) return Grantor::docker;
  if (framework == "kubernetes" || !s.setup_says("kind: pod|kind: deployment|containers:|limits:").empty())
    return Grantor::kubernetes;
  if (!s.log_says("microsoft-standard-wsl|wsl2|in wsl|on wsl|under wsl|with wsl|via wsl|wsl ubuntu").empty())
    return Grantor::wsl;
  if (!s.setup_says("docker run|docker-compose|shm_size").empty() || !s.log_says("docker|container").empty())
    return Grantor::docker;
  return Grantor::machine;
}

struct Amount {
  int64_t gib = 0;    // enough by the estimate, or the least that was asked for by the message; 0: unknown
  int64_t above = 0;  // more than this is wanted, in bytes, where no more is known; 0: unknown
  bool estimated = false;
  std::string why;
};

// "limits: ... memory: 500Mi" of a container's resources, in lower case.
std::optional<int64_t> kubernetes_limit(const std::string& setup) {
  const size_t limits = setup.find("limits:");
  const size_t memory = limits == std::string::npos ? limits : setup.find("memory:", limits);
  if (memory == std::string::npos || memory - limits > 200) return std::nullopt;
  const size_t digits = setup.find_first_of("0123456789", memory);
  if (digits == std::string::npos || digits - memory > 12) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(setup.c_str() + digits, &end);
  if (number <= 0 || number > 1e6) return std::nullopt;
  const double unit = *end == 'g' ? 1024.0 * 1024 * 1024 : *end == 'm' ? 1024.0 * 1024 : 1;
  return static_cast<int64_t>(number * unit);
}

// The need of all processes of a node by the estimate; else what the message printed as held and asked for. If the job
// failed within the estimate, or there is none, the limit tells only that more than it is wanted: a factor would be a
// guess.
Amount amount_of(const CaseView& s) {
  const std::optional<int64_t> limit = s.balance().limit;
  if (const std::optional<Estimate>& estimate = s.incident().estimate) {
    const int64_t processes = processes_per_node(s.job());
    const int64_t low = estimate->host_low_bytes * processes, high = estimate->host_high_bytes * processes;
    if (!limit || high > *limit)
      return {high / kGiB + 1, 0, true,
              fmt::format("{} to {} estimated for {} process{} of a node", figure(low), figure(high), processes,
                          processes == 1 ? "" : "es")};
  }
  const std::optional<int64_t> granted = limit ? limit : kubernetes_limit(s.incident().setup_text);
  const std::optional<int64_t>& asked = s.balance().observed;
  if (asked && *asked > granted.value_or(0))
    return {*asked / kGiB + 1, 0, false,
            fmt::format("{} were held and asked for by the message: the least", figure(*asked))};
  const int64_t least = std::max(granted.value_or(0), s.message()->process_bytes.value_or(0));
  if (least <= 0) return {0, 0, false, "how much it wants is not printed"};
  return {0, least, false, fmt::format("it wants more than {}; how much more is not printed", figure(least))};
}

// Who tells how much a process really takes.
std::string_view measured_by(Grantor grantor) {
  switch (grantor) {
    case Grantor::slurm:
      return "`sacct -j JOB -o MaxRSS,ReqMem` of a run with far more shows the need";
    case Grantor::kubernetes:
      return "`kubectl top pod` while it runs, `kubectl describe pod` (limits, last state)";
    case Grantor::docker:
      return "`docker stats` while it runs shows the need";
    default:
      return "`free -h` while it runs shows the need";
  }
}

// "64" where a size is known, "<more than 64 GiB>" where only the least is.
std::string size_in(const Amount& amount, std::string_view unit) {
  if (amount.gib) return fmt::format("{}{}", amount.gib, unit);
  return amount.above ? fmt::format("<more than {}>", figure(amount.above)) : fmt::format("<more>{}", unit);
}

// "--mem-per-cpu=4096M" in lower case; Slurm's default unit is MiB.
std::optional<int64_t> per_cpu_bytes(const CaseView& s) {
  if (const auto stated = s.incident().resources.job.memory_requested_per_cpu_bytes) return stated;
  const std::string& setup = s.incident().setup_text;
  const size_t at = setup.find("mem-per-cpu");
  if (at == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(setup.c_str() + at + std::string_view("mem-per-cpu=").size(), &end);
  if (number <= 0 || number > 1e9) return std::nullopt;
  return static_cast<int64_t>(number * (*end == 'g' ? kGiB : int64_t{1} << 20));
}

std::string slurm_words(const CaseView& s, const Amount& amount) {
  const std::optional<int64_t> each = per_cpu_bytes(s);
  if (!each) return "#SBATCH --mem=" + size_in(amount, "G");
  const int64_t cpus = std::max<int64_t>(1, s.balance().limit.value_or(*each) / *each);
  const std::string wanted =
      amount.gib ? fmt::format("{}G", (amount.gib + cpus - 1) / cpus) : fmt::format("<more than {}>", figure(*each));
  return fmt::format("#SBATCH --mem-per-cpu={}, or more --cpus-per-task", wanted);
}

std::string limit_words(const CaseView& s, Grantor grantor, const Amount& amount) {
  switch (grantor) {
    case Grantor::slurm:
      return slurm_words(s, amount);
    case Grantor::kubernetes:
      return "resources.limits.memory: " + size_in(amount, "Gi");
    case Grantor::docker:
      return fmt::format("docker run --memory={}; Docker Desktop: Settings > Resources > Memory", size_in(amount, "g"));
    case Grantor::wsl:
      return fmt::format("%UserProfile%\\.wslconfig: [wsl2] memory={}; then wsl --shutdown", size_in(amount, "GB"));
    default:
      // A part more than there is would be a guess: only an estimate names a size.
      return amount.estimated
                 ? fmt::format("more host memory (RAM): up to {} GiB; swap bridges a short peak", amount.gib)
                 : "more host memory (RAM), or swap for a short peak";
  }
}

// The limit, and what to measure where its size is not known.
std::string words(const CaseView& s, const Amount& amount) {
  const Grantor grantor = grantor_of(s);
  std::string text = limit_words(s, grantor, amount);
  if (amount.gib || grantor == Grantor::machine) return text;
  return fmt::format("{} ({})", text, measured_by(grantor));
}

}  // namespace

void more_host_memory(const CaseView& s, Findings& findings) {
  if (s.pool() != Pool::host || !s.message()) return;
  const Amount amount = amount_of(s);
  Remedy remedy = make_remedy(s, "host-memory", {{"gib", std::to_string(amount.gib)}}, {}, amount.why);
  remedy.set = words(s, amount);
  remedy.settings.clear();
  if (grantor_of(s) == Grantor::slurm)
    remedy.caveats.push_back("`seff JOB` or `sacct -j JOB -o MaxRSS` says what it really used");
  if (!amount.estimated && amount.gib)
    remedy.caveats.push_back("the least: what comes after the failed request adds to it");
  findings.offer(std::move(remedy));
}

}  // namespace headroom::doctor
