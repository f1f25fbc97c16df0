#include "doctor/output/html_bars.h"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/balance.h"
#include "doctor/remedies/figures.h"

namespace headroom::doctor {
namespace {

// Distinguishable with any colour vision (Okabe and Ito 2008), in the order of the current terms.
constexpr const char* kColours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9",
                                    "#d55e00", "#b8a800", "#7a7f87", "#8c6bb1", "#4d9221"};

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

std::vector<Term> terms_of_message(const Case& incident) {
  const Message* message = main_message(incident);
  if (!message || pool_of(incident) != Pool::device) return {};
  const MessageFigures f = figures_of(*message);
  if (!f.capacity || !f.allocated) return {};
  std::vector<Term> terms;
  const auto add = [&](const char* name, const std::optional<int64_t>& bytes) {
    if (bytes && *bytes > 0) terms.push_back({name, *bytes, {}, {}});
  };
  // A listed process may be this one: counts at most what PyTorch does not hold.
  const int64_t outside = f.outside_pytorch.value_or(0);
  const int64_t others = std::min(outside, f.foreign.value_or(f.unattributed.value_or(0)));
  add("live tensors", f.allocated);
  add("held by PyTorch, unused", f.unallocated);
  add("context and libraries", outside - others);
  add(f.foreign && *f.foreign <= outside ? "other processes" : "unattributed", others);
  add("asked for", f.requested);
  return terms;
}

Bars::Bars(const Report& report) {
  const Diagnosis& d = report.diagnosis;
  const Message* message = main_message(report.incident);
  limit_ = d.limit_bytes.value_or(0);
  if (report.incident.estimate)
    add(report.incident.estimate->terms);
  else if (message && message->capacity_bytes)
    limit_ = *message->capacity_bytes;
  add(terms_of_message(report.incident));
  for (const Remedy& remedy : d.remedies) add(remedy.terms_after);
  add(d.terms_after);
  widest_ = std::max(widest_, limit_);
}

std::string Bars::draw(const std::vector<Term>& terms, std::string_view label) const {
  constexpr double width = 1000;
  const double scale = widest_ > 0 ? width / (1.04 * static_cast<double>(widest_)) : 0;
  std::string out = fmt::format("<svg viewBox=\"0 0 1000 56\" role=\"img\" aria-label=\"{}\">", escaped(label));
  double x = 0;
  int64_t total = 0;
  for (const Term& term : terms) {
    const double length = static_cast<double>(term.bytes) * scale;
    out +=
        fmt::format("<rect x=\"{:.1f}\" y=\"8\" width=\"{:.1f}\" height=\"36\" fill=\"{}\"><title>{} {}</title></rect>",
                    x, std::max(0.0, length), colour(term.name), escaped(term.name), figure(term.bytes));
    x += length;
    total += term.bytes;
  }
  if (limit_ > 0) {
    const double at = static_cast<double>(limit_) * scale;
    out += fmt::format("<path d=\"M{0:.1f} 0V56\" stroke=\"{1}\" stroke-width=\"4\" stroke-dasharray=\"8 4\"/>", at,
                       total > limit_ ? "#d33" : "#2a8");
  }
  return out + "</svg>\n";
}

std::string Bars::legend() const {
  std::string out = "<p class=\"legend\">";
  for (const auto& [name, index] : order_)
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", colour(name), escaped(name));
  if (limit_ > 0) out += fmt::format("<span>&#9478; the limit, {}</span>", figure(limit_));
  return out + "</p>\n";
}

void Bars::add(const std::vector<Term>& terms) {
  int64_t total = 0;
  for (const Term& term : terms) {
    total += term.bytes;
    order_.emplace(term.name, order_.size());
  }
  widest_ = std::max(widest_, total);
}

const char* Bars::colour(const std::string& name) const {
  const auto at = order_.find(name);
  return kColours[(at == order_.end() ? 0 : at->second) % std::size(kColours)];
}

}  // namespace headroom::doctor
