#include "doctor/config/draft.h"

#include <fmt/format.h>

#include "doctor/config/job_fields.h"

namespace headroom::doctor {

void Draft::note_origin(const std::string& name, const Origin& origin, bool changed) {
  const auto known = job.keys.origins.find(name);
  if (changed && known != job.keys.origins.end()) {
    const Origin& before = known->second;
    const bool same_place = before.file == origin.file && before.line == origin.line && before.key == origin.key;
    if (!same_place)
      job.keys.conflicts.push_back(
          {origin,
           fmt::format("{} holds; {} in {}:{} says otherwise", origin.key, before.key, before.file, before.line), ""});
  }
  job.keys.origins[name] = origin;
}

const Setting* Draft::fact(const std::string& name) const {
  const auto found = facts.find(name);
  return found == facts.end() ? nullptr : &found->second;
}

std::optional<bool> Draft::fact_truth(const std::string& name) const {
  const Setting* setting = fact(name);
  return setting ? truth(*setting) : std::nullopt;
}

std::string Draft::fact_text(const std::string& name) const {
  const Setting* setting = fact(name);
  return setting ? setting->text : std::string();
}

std::optional<int64_t> Draft::fact_number(const std::string& name) const {
  const Setting* setting = fact(name);
  return setting ? whole_number(*setting) : std::nullopt;
}

void Draft::take_extras() {
  for (const auto& [name, text] : extras)
    if (!text.empty()) set_extra_field(job, name, text);
}

LoraSettings& Draft::lora() {
  if (!job.lora) job.lora.emplace();
  return *job.lora;
}

void Draft::correct(const Origin& origin, std::string text, const std::string& value) {
  job.keys.corrected.push_back({origin, std::move(text), value.substr(0, 200)});
}

}  // namespace headroom::doctor
