#include "doctor/messages/resources.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "doctor/messages/clean_line.h"
#include "doctor/messages/quantity.h"

namespace headroom::doctor {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front())) != 0) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back())) != 0) s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  while (parts.size() < 64) {
    const size_t at = s.find(separator);
    parts.push_back(trimmed(s.substr(0, at)));
    if (at == std::string_view::npos) break;
    s.remove_prefix(at + 1);
  }
  return parts;
}

std::vector<std::string_view> tokens(std::string_view s) {
  std::vector<std::string_view> parts;
  while (parts.size() < 64) {
    s = trimmed(s);
    if (s.empty()) break;
    const size_t end = std::min(s.find_first_of(" \t"), s.size());
    parts.push_back(s.substr(0, end));
    s.remove_prefix(end);
  }
  return parts;
}

std::optional<int64_t> integer(std::string_view s) {
  s = trimmed(s);
  if (s.empty() || s.size() > 15) return std::nullopt;
  int64_t value = 0;
  for (const char c : s) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

void take_largest(std::optional<int64_t>& field, int64_t value) { field = std::max(field.value_or(value), value); }

std::optional<int64_t> bytes_of(std::string_view s, uint32_t units) {
  const auto quantity = parse_quantity(trimmed(s), units);
  return quantity ? std::optional(quantity->bytes) : std::nullopt;
}

// Finds the text after a key in a line, squeezed.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {}
  std::optional<size_t> after(std::string_view key) const {
    const size_t at = text_.view().find(key);
    return at == std::string_view::npos ? std::nullopt : std::optional(at + key.size());
  }
  void bytes(std::string_view key, std::optional<int64_t>& field) const {
    const auto at = after(key);
    if (!at) return;
    if (const auto quantity = quantity_at(text_, *at, kIec | kSi)) field = quantity->bytes;
  }
  void count(std::string_view key, std::optional<int64_t>& field) const {
    const auto at = after(key);
    if (!at) return;
    if (const auto number = whole_number_at(text_, *at, true)) field = number->value;
  }
  void real(std::string_view key, std::optional<double>& field) const {
    const auto at = after(key);
    if (!at) return;
    if (const auto number = real_at(text_, *at, true)) field = number->value;
  }

 private:
  Squeezed text_;
};

void server_facts(const Line& line, ServerFacts& facts) {
  line.bytes("modelloadingtook", facts.weights_bytes);
  line.bytes("loadingmodelweightstook", facts.weights_bytes);
  line.bytes("modelweightstake", facts.weights_bytes);
  line.bytes("non_torch_memorytakes", facts.non_torch_bytes);
  line.bytes("activationpeakmemorytakes", facts.activation_peak_bytes);
  line.bytes("reservedforkvcacheis", facts.kv_cache_bytes);
  line.bytes("availablekvcachememory:", facts.kv_cache_bytes);
  line.bytes("total_gpu_memory(", facts.total_bytes);
  line.real("gpu_memory_utilization(", facts.gpu_memory_utilization);
  line.real("gpu_memory_utilization=", facts.gpu_memory_utilization);
  line.count("kvcachesize:", facts.kv_cache_tokens);
  line.count("max_total_num_tokens=", facts.kv_cache_tokens);
  line.count("#gpublocks:", facts.kv_blocks);
  line.count("#cudablocks:", facts.kv_blocks);
  line.count("maximumconcurrencyfor", facts.max_model_len);
  line.real("tokensperrequest:", facts.max_concurrency);
  if (const auto graphs = line.after("graphcapturingfinished")) line.bytes("took", facts.graph_bytes);
}

// seff's report and "#SBATCH" lines
void job_facts(const Line& line, std::string_view text, JobResources& job) {
  line.bytes("memoryutilized:", job.memory_used_bytes);
  if (const auto of = line.after("memoryefficiency:")) line.bytes("%of", job.memory_requested_bytes);
  if (text.find("#SBATCH") == std::string_view::npos) return;
  const auto option = [&](std::string_view key) -> std::string_view {
    const size_t at = text.find(key);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = text.substr(at + key.size());
    if (rest.empty() || (rest[0] != '=' && rest[0] != ' ')) return {};
    return tokens(rest.substr(1)).empty() ? std::string_view{} : tokens(rest.substr(1))[0];
  };
  // Slurm reads a number without a unit as MiB.
  const auto slurm_memory = [](std::string_view value) -> std::optional<int64_t> {
    if (const auto count = integer(value)) return *count << 20;
    return bytes_of(value, kAnyBinary);
  };
  if (const auto value = option("--mem"); !value.empty()) job.memory_requested_bytes = slurm_memory(value);
  if (const auto value = option("--mem-per-cpu"); !value.empty())
    job.memory_requested_per_cpu_bytes = slurm_memory(value);
  if (const auto value = option("--cpus-per-task"); !value.empty()) job.cpus = integer(value);
  if (const auto value = option("--nodes"); !value.empty()) job.nodes = integer(value);
  for (const std::string_view key : {"--gres", "--gpus", "--gpus-per-node"}) {
    const auto value = option(key);
    if (!value.empty()) job.gpus = integer(value.substr(value.rfind(':') + 1));
  }
}

}  // namespace

const std::vector<std::string_view>& ResourceReader::words() {
  static const std::vector<std::string_view> words = {"maxrss",
                                                      "reqmem",
                                                      "memory utilized",
                                                      "memory efficiency",
                                                      "#sbatch",
                                                      "mib / ",
                                                      "mib |",
                                                      "memory.used",
                                                      "kv cache size",
                                                      "kv cache memory",
                                                      "gpu blocks",
                                                      "cuda blocks",
                                                      "model loading took",
                                                      "model weights t",
                                                      "graph capturing",
                                                      "maximum concurrency",
                                                      "max_total_num_tokens",
                                                      "gpu_memory_utilization"};
  return words;
}

GpuUsage* ResourceReader::gpu(int index) {
  auto& gpus = resources_.gpus;
  const auto at =
      std::lower_bound(gpus.begin(), gpus.end(), index, [](const GpuUsage& g, int i) { return g.index < i; });
  if (at != gpus.end() && at->index == index) return &*at;
  if (gpus.size() >= 64) return nullptr;
  GpuUsage fresh;
  fresh.index = index;
  return &*gpus.insert(at, std::move(fresh));
}

// sacct's and nvidia-smi's CSV headers
bool ResourceReader::table_header(std::string_view text) {
  const bool sacct = text.find("MaxRSS") != std::string_view::npos || text.find("ReqMem") != std::string_view::npos;
  const bool query = text.find("memory.used") != std::string_view::npos && text.find(',') != std::string_view::npos &&
                     text.find("--") == std::string_view::npos;
  if ((!sacct && !query) || text.size() > 2000 || text.find('=') != std::string_view::npos) return false;
  columns_.clear();
  rows_ = 0;
  separator_ = query ? ',' : text.find('|') != std::string_view::npos ? '|' : '\0';
  if (separator_ != 0) {
    for (const std::string_view name : split(text, separator_)) columns_.push_back({std::string(name), 0, 0});
  } else {
    for (const std::string_view name : tokens(text)) {
      const auto start = static_cast<size_t>(name.data() - text.data());
      columns_.push_back({std::string(name), start, start + name.size()});
    }
  }
  return true;
}

void ResourceReader::table_row(std::string_view text) {
  const auto parts = separator_ != 0 ? split(text, separator_) : std::vector<std::string_view>{};
  const bool other = separator_ != 0 ? parts.size() != columns_.size() : trimmed(text).empty() || rows_ > 200;
  ++rows_;
  if (other) {
    columns_.clear();
    return;
  }
  row_gpu_.reset();
  if (separator_ == 0 && text.find("---") != std::string_view::npos) {  // the rule below the header has the widths
    const auto rules = tokens(text);
    for (size_t i = 0; i < rules.size() && i < columns_.size(); ++i) {
      columns_[i].start = static_cast<size_t>(rules[i].data() - text.data());
      columns_[i].end = columns_[i].start + rules[i].size();
    }
    return;
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (separator_ != 0) {
      if (i < parts.size()) table_value(column.name, parts[i]);
    } else if (column.start < text.size()) {
      table_value(column.name, trimmed(text.substr(column.start, column.end - column.start)));
    }
  }
}

void ResourceReader::table_value(const std::string& name, std::string_view value) {
  JobResources& job = resources_.job;
  if (value.empty()) return;
  const auto named = [&](std::string_view prefix) { return name.rfind(prefix, 0) == 0; };
  if (named("MaxRSS")) {
    if (const auto bytes = bytes_of(value, kAnyBinary | kBare)) take_largest(job.memory_used_bytes, *bytes);
  } else if (named("ReqMem")) {
    const char scope = value.back();  // "16Gn": per node, "4Gc": per CPU
    if (scope == 'n' || scope == 'c') value.remove_suffix(1);
    if (const auto bytes = bytes_of(value, kAnyBinary)) {
      (scope == 'c' ? job.memory_requested_per_cpu_bytes : job.memory_requested_bytes) = *bytes;
    }
  } else if (named("JobID") && job.job_id.empty()) {
    job.job_id = printable(value.substr(0, 40));
  } else if (named("State") && (job.state.empty() || value.find("OUT_OF_ME") == 0)) {
    job.state = printable(value.substr(0, 40));
  } else if (named("NCPUS") || named("AllocCPUS")) {
    if (const auto count = integer(value)) take_largest(job.cpus, *count);
  } else if (named("NNodes")) {
    if (const auto count = integer(value)) take_largest(job.nodes, *count);
  } else if (named("index")) {
    if (const auto index = integer(value); index && *index < 4096) row_gpu_ = static_cast<int>(*index);
  } else if (named("memory.") || named("name")) {
    GpuUsage* usage = gpu(row_gpu_.value_or(0));
    if (usage == nullptr) return;
    if (named("name")) usage->name = printable(value.substr(0, 80));
    auto bytes = bytes_of(value, kIec);
    if (!bytes && name.find("[MiB]") != std::string::npos) {
      if (const auto count = integer(value)) bytes = *count << 20;
    }
    if (bytes && named("memory.used")) {
      usage->used_bytes = bytes;
      updated_ = usage->index;
    }
    if (bytes && named("memory.total")) usage->total_bytes = bytes;
  }
}

const GpuUsage* ResourceReader::updated_gpu() const {
  for (const GpuUsage& usage : resources_.gpus) {
    if (updated_ && usage.index == *updated_) return &usage;
  }
  return nullptr;
}

// "| N/A   45C    P0    70W / 400W |  38000MiB / 40960MiB |    100%      Default |", the line below index and name
bool ResourceReader::usage_line(std::string_view text, std::string_view previous) {
  const size_t slash = text.find("MiB / ");
  if (slash == std::string_view::npos || text.find('|') >= slash) return false;
  const auto cells = split(previous, '|');
  const auto words = cells.size() > 1 ? tokens(cells[1]) : std::vector<std::string_view>{};
  const auto index = words.empty() ? std::nullopt : integer(words[0]);
  GpuUsage* usage = index && *index < 4096 ? gpu(static_cast<int>(*index)) : nullptr;
  if (usage == nullptr) return true;
  usage->name.clear();
  for (size_t i = 1; i < words.size() && words[i] != "On" && words[i] != "Off"; ++i) {
    usage->name += (i == 1 ? "" : " ") + printable(words[i].substr(0, 40));
  }
  const size_t open = text.rfind('|', slash);
  usage->used_bytes = bytes_of(text.substr(open + 1, slash + 3 - open - 1), kIec);
  const size_t close = std::min(text.find('|', slash), text.size());
  usage->total_bytes = bytes_of(text.substr(slash + 6, close - slash - 6), kIec);
  usage->processes.clear();
  updated_ = usage->index;
  return true;
}

// "|    0   N/A  N/A      1234      C   python                      12345MiB |"
bool ResourceReader::process_line(std::string_view text) {
  const size_t end = text.find("MiB |");
  const size_t bar = text.find('|');
  if (end == std::string_view::npos || bar >= end) return false;
  const auto words = tokens(text.substr(bar + 1, end + 3 - bar - 1));
  size_t type = 0;
  while (type < words.size() && words[type] != "C" && words[type] != "G" && words[type] != "C+G") ++type;
  const auto index = words.empty() ? std::nullopt : integer(words[0]);
  if (type == 0 || type + 1 >= words.size() || !index || *index >= 4096) return true;
  const auto pid = integer(words[type - 1]);
  const auto bytes = bytes_of(words.back(), kIec);
  GpuUsage* usage = pid && bytes ? gpu(static_cast<int>(*index)) : nullptr;
  if (usage == nullptr || usage->processes.size() >= 64) return true;
  const std::string name = type + 2 < words.size() ? printable(words[type + 1].substr(0, 80)) : std::string();
  usage->processes.push_back({*pid, name, *bytes});
  return true;
}

void ResourceReader::line(std::string_view text, std::string_view previous) {
  updated_.reset();
  text = text.substr(0, 4096);
  if (table_header(text)) return;
  if (!columns_.empty()) table_row(text);
  if (usage_line(text, previous) || process_line(text)) return;
  const Line squeezed(text);
  server_facts(squeezed, resources_.server);
  job_facts(squeezed, text, resources_.job);
}

}  // namespace headroom::doctor
