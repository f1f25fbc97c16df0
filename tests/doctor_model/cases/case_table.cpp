#include "cases/case_table.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "base/error.h"

namespace headroom::doctor {
namespace {

using Setter = std::function<void(MeasuredCase&, const std::string&)>;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Version version_of(const std::string& text) {
  const std::vector<std::string> parts = split(text, '.');
  return {std::stoi(parts.at(0)), parts.size() > 1 ? std::stoi(parts[1]) : 0};
}

System system_of(const std::string& name) {
  const std::map<std::string, System> names{{"hf_trainer", System::hf_trainer},  {"torchtune", System::torchtune},
                                            {"pytorch", System::pytorch_script}, {"deepspeed", System::deepspeed},
                                            {"litgpt", System::litgpt},          {"neox", System::neox}};
  return names.at(name);
}

Sharding sharding_of(const std::string& name) {
  const std::map<std::string, Sharding> names{
      {"ddp", Sharding::ddp}, {"zero1", Sharding::zero1}, {"zero2", Sharding::zero2}, {"zero3", Sharding::zero3}};
  return names.at(name);
}

LoraSettings& lora(MeasuredCase& c) {
  if (!c.job.lora) c.job.lora.emplace();
  return *c.job.lora;
}

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table{
      {"system", [](MeasuredCase& c, const std::string& v) { c.job.system = system_of(v); }},
      {"gpu", [](MeasuredCase& c, const std::string& v) { c.gpu = find_gpu(v); }},
      {"gpus", [](MeasuredCase& c, const std::string& v) { c.job.devices.gpus = std::stoll(v); }},
      {"torch", [](MeasuredCase& c, const std::string& v) { c.software.torch = version_of(v); }},
      {"transformers", [](MeasuredCase& c, const std::string& v) { c.software.transformers = version_of(v); }},
      {"batch", [](MeasuredCase& c, const std::string& v) { c.job.batch.micro = std::stoll(v); }},
      {"accumulation", [](MeasuredCase& c, const std::string& v) { c.job.batch.accumulation = std::stoll(v); }},
      {"sequence", [](MeasuredCase& c, const std::string& v) { c.job.batch.sequence = std::stoll(v); }},
      {"weights", [](MeasuredCase& c, const std::string& v) { c.job.precision.weights = v; }},
      {"autocast", [](MeasuredCase& c, const std::string& v) { c.job.precision.autocast = v; }},
      {"attention", [](MeasuredCase& c, const std::string& v) { c.job.compute.attention = v; }},
      {"checkpointing",
       [](MeasuredCase& c, const std::string& v) {
         c.job.compute.checkpointing = v != "0";
         if (v == "selective") c.job.compute.checkpointing_kind = v;
       }},
      {"optimizer", [](MeasuredCase& c, const std::string& v) { c.job.optimizer.name = v; }},
      {"lora_rank", [](MeasuredCase& c, const std::string& v) { lora(c).rank = std::stoll(v); }},
      {"lora_targets", [](MeasuredCase& c, const std::string& v) { lora(c).targets = split(v, ','); }},
      {"tensor", [](MeasuredCase& c, const std::string& v) { c.job.parallel.tensor = std::stoll(v); }},
      {"pipeline", [](MeasuredCase& c, const std::string& v) { c.job.parallel.pipeline = std::stoll(v); }},
      {"context", [](MeasuredCase& c, const std::string& v) { c.job.parallel.context = std::stoll(v); }},
      {"sharding", [](MeasuredCase& c, const std::string& v) { c.job.parallel.sharding = sharding_of(v); }},
      {"lora_dropout", [](MeasuredCase& c, const std::string& v) { lora(c).dropout = std::stod(v); }},
      {"quantization", [](MeasuredCase& c, const std::string& v) { c.job.precision.quantization = v; }},
      {"in_backward", [](MeasuredCase& c, const std::string& v) { c.job.optimizer.in_backward = v == "1"; }},
      {"chunked_loss", [](MeasuredCase& c, const std::string& v) { c.job.compute.chunked_loss = v == "1"; }},
      {"compile", [](MeasuredCase& c, const std::string& v) { c.job.compute.compile = v == "1"; }},
      {"packing", [](MeasuredCase& c, const std::string& v) { c.job.batch.packing = v == "1"; }},
      {"offload_activations",
       [](MeasuredCase& c, const std::string& v) { c.job.compute.activation_offload = v == "1"; }},
      {"offload_optimizer",
       [](MeasuredCase& c, const std::string& v) {
         c.job.parallel.offload_optimizer = v == "1" ? Offload::cpu : Offload::none;
       }},
  };
  return table;
}

void apply_pair(MeasuredCase& c, const std::string& pair, const std::string& place) {
  const size_t equals = pair.find('=');
  const auto setter = equals == std::string::npos ? setters().end() : setters().find(pair.substr(0, equals));
  if (setter == setters().end())
    throw Error(ErrorKind::format, fmt::format("{}: unknown field '{}'", place, pair), "use a field of case_table.cpp");
  setter->second(c, pair.substr(equals + 1));
}

}  // namespace

bool MeasuredCase::fit() const {
  uint64_t hash = 14695981039346656037u;
  for (const char c : source + "/" + name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return (hash >> 32) % 2 == 0;
}

std::vector<MeasuredCase> read_cases(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::usage, fmt::format("{}: cannot be read", path), "give a table of cases");
  std::vector<MeasuredCase> cases;
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::string place = fmt::format("{}:{}", path, number);
    const std::vector<std::string> columns = split(line, '\t');
    if (columns.size() < 6) throw Error(ErrorKind::format, place + ": fewer than 6 columns", "correct the line");
    MeasuredCase c;
    c.source = columns[0];
    c.name = columns[1];
    c.statistic = columns[2];
    c.bytes = std::stod(columns[3]);
    const std::filesystem::path beside = std::filesystem::path(path).parent_path() / columns[4];
    c.model = columns[4].rfind("models/", 0) == 0 ? beside.string() : columns[4];
    for (const std::string& pair : split(columns[5], ' '))
      if (!pair.empty()) apply_pair(c, pair, place);
    cases.push_back(std::move(c));
  }
  return cases;
}

double predicted_bytes(const MeasuredCase& measured, const Estimate& e) {
  if (measured.statistic == "reserved") return static_cast<double>(e.reserved_bytes);
  if (measured.statistic == "allocated") return static_cast<double>(e.allocated_bytes);
  return static_cast<double>(e.likely_bytes);
}

}  // namespace headroom::doctor
