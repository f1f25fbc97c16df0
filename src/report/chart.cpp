#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/markup.h"

namespace headroom::report {
namespace {

Span widened(Span span) {
  if (span.most - span.least > 1e-12 * std::max(1.0, std::abs(span.most))) return span;
  const double by = std::max(1e-9, std::abs(span.most) * 0.05);
  return {span.least - by, span.most + by};
}

}  // namespace

std::vector<double> round_ticks(Span span, int count, bool binary) {
  const double rough = (span.most - span.least) / count;
  double step = 1;
  if (binary) {
    step = std::exp2(std::ceil(std::log2(std::max(1.0, rough))));
  } else {
    const double power = std::pow(10, std::floor(std::log10(std::max(1e-12, rough))));
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
      if (step = factor * power; step >= rough * 0.999) break;
  }
  std::vector<double> ticks;
  for (double at = std::ceil(span.least / step - 1e-9) * step; at <= span.most + step * 1e-9; at += step) {
    ticks.push_back(std::abs(at) < step * 1e-9 ? 0 : at);
    if (ticks.size() > static_cast<size_t>(count) + 1) break;
  }
  return ticks;
}

Chart::Chart(std::string name, Span x, Span y, bool low)
    : name_(std::move(name)), x_(widened(x)), y_(widened(y)), low_(low) {}

std::string Chart::path(const Points& points, bool begin) const {
  std::string out;
  for (const auto& [x, y] : points) {
    out += fmt::format("{}{:.1f} {:.1f}", begin ? "M" : "L", across(x), down(std::clamp(y, y_.least, y_.most)));
    begin = false;
  }
  return out;
}

void Chart::area(const Points& lower, const Points& upper, const std::string& fill) {
  if (lower.empty()) return;
  drawn_ +=
      "<path d=\"" + path(upper, true) + path({lower.rbegin(), lower.rend()}, false) + "Z\" fill=\"" + fill + "\"/>\n";
}

void Chart::line(const Points& points, const std::string& style) {
  if (points.size() == 1) return mark(points[0].first, points[0].second, "currentColor", "");
  if (!points.empty()) drawn_ += "<path d=\"" + path(points, true) + "\" fill=\"none\" " + style + "/>\n";
}

void Chart::level(double y, const std::string& style) {
  drawn_ += fmt::format("<line x1=\"0\" x2=\"1000\" y1=\"{0:.1f}\" y2=\"{0:.1f}\" {1}/>\n", down(y), style);
}

std::string Chart::disc(double x, double y, const std::string& fill, const std::string& title, bool passive) const {
  return fmt::format(
      "<path d=\"M{:.1f} {:.1f}h.01\" stroke=\"{}\" stroke-width=\"11\" stroke-linecap=\"round\"{}>"
      "<title>{}</title></path>\n",
      across(x), down(y), fill, passive ? " pointer-events=\"none\"" : "", escaped(title));
}

std::string Chart::strip(Span span, const std::string& title) const {
  return fmt::format(
      "<rect class=\"hover\" x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"300\"><title>{}</title></rect>\n",
      across(span.least), std::max(0.1, across(span.most) - across(span.least)), escaped(title));
}

void Chart::mark(double x, double y, const std::string& fill, const std::string& title) {
  drawn_ += disc(x, y, fill, title, links_);
}

void Chart::link(Span around, double x, double y, const std::string& fill, const std::string& title,
                 const std::string& place) {
  links_ = true;
  drawn_ += fmt::format("<a href=\"{}\" aria-label=\"{}\">\n{}{}</a>\n", escaped(place), escaped(title),
                        strip(around, title), disc(x, y, fill, title, false));
}

void Chart::hover(double begin, double end, const std::string& title) { drawn_ += strip({begin, end}, title); }

std::string Chart::html(const Label& x_label, bool x_binary, const Label& y_label, bool y_binary) const {
  std::string grid, labels;
  for (const double y : round_ticks(y_, low_ ? 3 : 5, y_binary)) {
    grid += fmt::format("<line class=\"grid\" x1=\"0\" x2=\"1000\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>", down(y));
    labels +=
        fmt::format("<span class=\"y\" style=\"bottom:{:.2f}%\">{}</span>", 100 - down(y) / 3, escaped(y_label(y)));
  }
  int index = 0;
  for (const double x : round_ticks(x_, 6, x_binary)) {
    const double at = across(x) / 10;
    labels += fmt::format("<span class=\"x{}{}\" style=\"left:{:.2f}%\">{}</span>", index++ % 2 ? " odd" : "",
                          at < 2    ? " begin"
                          : at > 96 ? " end"
                                    : "",
                          at, escaped(x_label(x)));
  }
  return fmt::format(
      "<div class=\"chart{}\"><svg viewBox=\"0 0 1000 300\" preserveAspectRatio=\"none\" role=\"{}\" "
      "aria-label=\"{}\">\n"
      "{}\n{}</svg>{}</div>\n",
      low_ ? " low" : "", links_ ? "group" : "img", escaped(name_), grid, drawn_, labels);
}

}  // namespace headroom::report
