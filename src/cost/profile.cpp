#include "cost/profile.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/counter_random.h"
#include "base/error.h"
#include "cost/shipped_profiles.h"
#include "formats/json.h"
#include "ops/backend.h"
#include "ops/cpu/capabilities.h"

namespace headroom {
namespace {

class Reader {
 public:
  Reader(const Json& json, const std::string& source) : json_(json), source_(source) {}

  double positive(const Json& object, const char* key) const {
    const double value = field(object, key).is_number() ? field(object, key).get<double>() : -1;
    if (!(value > 0) || value > 1e18) refuse(key, "a positive number");
    return value;
  }
  int64_t whole(const Json& object, const char* key, int64_t fallback) const {
    if (!object.contains(key)) return fallback;
    constexpr int64_t kMost = int64_t{1} << 50;
    if (!object[key].is_number_integer() || object[key].get<int64_t>() < 0 || object[key].get<int64_t>() > kMost)
      refuse(key, "a whole number, 0 or more");
    return object[key].get<int64_t>();
  }
  DType dtype(const Json& object) const {
    const auto parsed =
        field(object, "dtype").is_string() ? parse_dtype(object["dtype"].get<std::string>()) : std::nullopt;
    if (!parsed) refuse("dtype", "f32, bf16 or f16");
    return *parsed;
  }
  // 0 if the key is absent.
  double positive_or_none(const Json& object, const char* key) const {
    return object.is_object() && object.contains(key) ? positive(object, key) : 0;
  }
  const Json& array(const char* key) const {
    if (!field(json_, key).is_array()) refuse(key, "an array");
    return json_[key];
  }
  const Json& field(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) refuse(key, "present");
    return object[key];
  }
  [[noreturn]] void refuse(const char* key, const char* wanted) const {
    throw Error(ErrorKind::format, fmt::format("{}: profile key '{}' should be {}", source_, key, wanted),
                "measure the profile again with `headroom profile`");
  }

 private:
  const Json& json_;
  const std::string& source_;
};

// "cpu or cuda"
std::string known_devices() {
  std::string names;
  for (const auto& backend : backends().all())
    names += fmt::format("{}{}", names.empty() ? "" : " or ", backend->name());
  return names;
}

// By name, or in older profiles by number.
Capabilities read_capabilities(const Reader& reader, const Json& json, const Backend& backend) {
  const bool named = json.contains("isa") && json["isa"].is_string();
  const auto known = named ? backend.capabilities_named(json["isa"].get<std::string>())
                           : backend.capabilities_numbered(reader.whole(json, "isa", 2));
  if (!known) reader.refuse("isa", std::string(backend.known_names()).c_str());
  return *known;
}

void read_facts(const Reader& reader, const Json& json, Profile& profile) {
  profile.facts.device = json.value("device", "cpu");
  const Backend* const backend = backends().find(profile.facts.device);
  if (!backend) reader.refuse("device", known_devices().c_str());
  const int64_t threads = std::max<int64_t>(1, reader.whole(json, "threads", 1));
  if (threads > (1 << 16)) reader.refuse("threads", "at most 65536");
  profile.facts.threads = static_cast<int>(threads);
  profile.facts.capabilities = read_capabilities(reader, json, *backend);
  profile.facts.native_bf16 = json.value("native_bf16", false);
  profile.facts.alignment = std::max<int64_t>(64, reader.whole(json, "alignment", 64));
  if (!std::has_single_bit(static_cast<uint64_t>(profile.facts.alignment)) || profile.facts.alignment > (1 << 20))
    reader.refuse("alignment", "a power of two, at most 1 MiB");
  profile.facts.gemm_workspace_cap = reader.whole(json, "gemm_workspace_bytes", 0);
}

void read_sources(const Reader& reader, const Json& json, Profile& profile) {
  if (!json.contains("sources")) return;
  for (const Json& row : reader.array("sources"))
    profile.sources.push_back(
        {reader.field(row, "rates").get<std::string>(), reader.field(row, "from").get<std::string>()});
}

void read_attention_kernels(const Reader& reader, const Json& json, Profile& profile) {
  if (!json.contains("attention_kernels")) return;
  for (const Json& row : reader.array("attention_kernels")) {
    profile.attention_kernels.push_back({reader.dtype(row), reader.positive_or_none(row, "forward"),
                                         reader.positive_or_none(row, "backward"), reader.whole(row, "sequence", 0),
                                         reader.whole(row, "head_dim", 0), row.value("disturbed", false),
                                         reader.field(row, "kernels").get<std::string>()});
    const AttentionRate& rate = profile.attention_kernels.back();
    if (rate.forward <= 0 && rate.backward <= 0) reader.refuse("attention_kernels", "rows with forward or backward");
  }
}

void mark(nlohmann::ordered_json& row, bool disturbed) {
  if (disturbed) row["disturbed"] = true;
}

nlohmann::ordered_json attention_row(const AttentionRate& rate) {
  nlohmann::ordered_json row{{"dtype", dtype_name(rate.dtype)}};
  if (!rate.kernels.empty()) row["kernels"] = rate.kernels;
  if (rate.forward > 0) row["forward"] = rate.forward;
  if (rate.backward > 0) row["backward"] = rate.backward;
  if (rate.sequence > 0) row["sequence"] = rate.sequence;
  if (rate.head_dim > 0) row["head_dim"] = rate.head_dim;
  mark(row, rate.disturbed);
  return row;
}

// The number of a profile's rates, and how many of them were disturbed.
struct Points {
  size_t all = 5, disturbed = 0;
};

template <typename Rows>
void count(const Rows& rows, Points& points) {
  points.all += rows.size();
  for (const auto& row : rows) points.disturbed += row.disturbed ? 1 : 0;
}

}  // namespace

std::string Profile::remark() const {
  Points points;
  points.disturbed = disturbed.size();
  count(products, points), count(attention, points), count(attention_kernels, points), count(streams, points),
      count(in_sequence, points);
  if (points.disturbed == 0) return {};
  return fmt::format(
      "note: of profile {}, {} of {} points were measured only while others kept the CPUs busy: predicted times may be "
      "too long; on a quieter machine measure again with `headroom profile`",
      name, points.disturbed, points.all);
}

std::string Profile::identity() const { return fmt::format("{}#{:016x}", name, hash); }

Profile parse_profile(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  const Reader reader(json, source);
  Profile profile;
  try {
    profile.name = reader.field(json, "name").get<std::string>();
    read_facts(reader, json, profile);
    profile.memory_bytes = reader.whole(json, "memory_bytes", 0);
    profile.context_bytes = reader.whole(json, "context_bytes", 0);
    profile.host_context_bytes = reader.whole(json, "host_context_bytes", 0);
    for (const Json& row : reader.array("products"))
      profile.products.push_back({row.value("op", ""), reader.dtype(row), reader.whole(row, "rows", 1),
                                  reader.whole(row, "outs", 1), reader.whole(row, "ins", 1),
                                  reader.positive(row, "flops_per_second"), row.value("multiply", ""),
                                  row.value("disturbed", false)});
    for (const Json& row : reader.array("attention"))
      profile.attention.push_back({reader.dtype(row),
                                   reader.positive(row, "forward"),
                                   reader.positive(row, "backward"),
                                   reader.whole(row, "sequence", 0),
                                   reader.whole(row, "head_dim", 0),
                                   row.value("disturbed", false),
                                   {}});
    read_attention_kernels(reader, json, profile);
    if (json.contains("streams"))
      for (const Json& row : reader.array("streams"))
        profile.streams.push_back({reader.field(row, "op").get<std::string>(), reader.dtype(row),
                                   reader.positive(row, "bytes_per_second"), row.value("disturbed", false)});
    if (json.contains("in_sequence"))
      for (const Json& row : reader.array("in_sequence"))
        profile.in_sequence.push_back(
            {reader.dtype(row), reader.positive(row, "factor"), row.value("disturbed", false)});
    read_sources(reader, json, profile);
    if (json.contains("disturbed"))
      for (const Json& key : reader.array("disturbed")) profile.disturbed.push_back(key.get<std::string>());
    profile.stream_bytes_per_second = reader.positive(json, "stream_bytes_per_second");
    profile.optimizer_bytes_per_second = reader.positive(json, "optimizer_bytes_per_second");
    profile.softmax_bytes_per_second = reader.positive(json, "softmax_bytes_per_second");
    profile.copy_bytes_per_second = reader.positive(json, "copy_bytes_per_second");
    for (const auto& [key, rate] : {std::pair{"disk_read_bytes_per_second", &profile.disk_read_bytes_per_second},
                                    std::pair{"disk_write_bytes_per_second", &profile.disk_write_bytes_per_second}})
      if (json.contains(key)) *rate = reader.positive(json, key);
    profile.launch_seconds = json.value("launch_seconds", 0.0);
    if (!(profile.launch_seconds >= 0 && profile.launch_seconds < 1))
      reader.refuse("launch_seconds", "0 or more, below 1");
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::format, fmt::format("{}: malformed profile: {}", source, e.what()),
                "measure the profile again with `headroom profile`");
  }
  for (DType dtype : {DType::f32, DType::bf16}) {
    bool product = false, attention = false;
    for (const ProductSample& s : profile.products) product = product || (s.dtype == dtype && s.multiply.empty());
    for (const AttentionRate& r : profile.attention) attention = attention || r.dtype == dtype;
    if (!product || !attention) reader.refuse(product ? "attention" : "products", "complete for f32 and bf16");
  }
  profile.hash = hash_text(text);
  return profile;
}

std::string profile_json(const Profile& profile) {
  nlohmann::ordered_json out{{"name", profile.name},
                             {"device", profile.facts.device},
                             {"threads", profile.facts.threads},
                             {"isa", backend_of(profile.facts).capabilities_name(profile.facts.capabilities)},
                             {"native_bf16", profile.facts.native_bf16},
                             {"alignment", profile.facts.alignment},
                             {"gemm_workspace_bytes", profile.facts.gemm_workspace_cap},
                             {"memory_bytes", profile.memory_bytes},
                             {"context_bytes", profile.context_bytes},
                             {"host_context_bytes", profile.host_context_bytes}};
  for (const RateSource& s : profile.sources) out["sources"].push_back({{"rates", s.rates}, {"from", s.from}});
  out["products"] = nlohmann::ordered_json::array();
  for (const ProductSample& s : profile.products) {
    out["products"].push_back({{"op", s.op},
                               {"dtype", dtype_name(s.dtype)},
                               {"rows", s.rows},
                               {"outs", s.outs},
                               {"ins", s.ins},
                               {"flops_per_second", s.flops_per_second}});
    if (!s.multiply.empty()) out["products"].back()["multiply"] = s.multiply;
    mark(out["products"].back(), s.disturbed);
  }
  out["attention"] = nlohmann::ordered_json::array();
  for (const AttentionRate& r : profile.attention) out["attention"].push_back(attention_row(r));
  for (const AttentionRate& r : profile.attention_kernels) out["attention_kernels"].push_back(attention_row(r));
  if (!profile.streams.empty()) out["streams"] = nlohmann::ordered_json::array();
  for (const StreamRate& r : profile.streams) {
    out["streams"].push_back({{"op", r.op}, {"dtype", dtype_name(r.dtype)}, {"bytes_per_second", r.bytes_per_second}});
    mark(out["streams"].back(), r.disturbed);
  }
  if (!profile.in_sequence.empty()) out["in_sequence"] = nlohmann::ordered_json::array();
  for (const SequenceFactor& s : profile.in_sequence) {
    out["in_sequence"].push_back({{"dtype", dtype_name(s.dtype)}, {"factor", s.factor}});
    mark(out["in_sequence"].back(), s.disturbed);
  }
  out["stream_bytes_per_second"] = profile.stream_bytes_per_second;
  out["optimizer_bytes_per_second"] = profile.optimizer_bytes_per_second;
  out["softmax_bytes_per_second"] = profile.softmax_bytes_per_second;
  out["copy_bytes_per_second"] = profile.copy_bytes_per_second;
  out["disk_read_bytes_per_second"] = profile.disk_read_bytes_per_second;
  out["disk_write_bytes_per_second"] = profile.disk_write_bytes_per_second;
  out["launch_seconds"] = profile.launch_seconds;
  if (!profile.disturbed.empty()) out["disturbed"] = profile.disturbed;
  return out.dump(1) + "\n";
}

Profile load_profile(const std::string& file_or_name) {
  std::string known;
  for (const ShippedProfile& shipped : shipped_profiles()) {
    if (shipped.name == file_or_name) return parse_profile(shipped.json, std::string(shipped.name));
    known += fmt::format("{}{}", known.empty() ? "" : ", ", shipped.name);
  }
  if (!std::filesystem::exists(file_or_name))
    throw Error(ErrorKind::usage, fmt::format("there is no profile file or shipped profile '{}'", file_or_name),
                "shipped profiles: " + known);
  return parse_profile(read_json(file_or_name, int64_t{4} << 20).dump(), file_or_name);
}

std::filesystem::path cached_profile_path(std::string_view accelerator) {
  const std::string name = accelerator.empty() ? "profile.json" : fmt::format("profile-{}.json", accelerator);
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::filesystem::path(cache) / "headroom" / name;
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "headroom" / name;
  return {};
}

Profile choose_profile(const std::string& requested, const DeviceFacts& cpu, std::string_view accelerator) {
  if (!requested.empty()) return load_profile(requested);
  const std::filesystem::path cached = cached_profile_path(accelerator);
  std::error_code status;
  if (!cached.empty() && std::filesystem::exists(cached, status)) return load_profile(cached.string());
  return load_profile(cpu.capabilities.has(kAvx512) ? "cpu-avx512" : "cpu-avx2");
}

}  // namespace headroom
