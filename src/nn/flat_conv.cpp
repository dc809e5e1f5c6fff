#include "nn/flat_conv.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include "tandem/error.h"

namespace tandem {
namespace {

// All lengths in places. A row takes `room` places, a multiple of the stride that leaves at least
// a window behind its last output; `lines` = room / stride outputs are computed for it, of which
// `out` count.
struct Plan {
  int64_t rows, places, in, out_places, out, kernel, stride, groups;
  int64_t room, lines, turns, each;  // turns: windows until the next that does not overlap
  int64_t group_in() const { return in / groups; }
  int64_t group_out() const { return out / groups; }
  int64_t padding() const { return (kernel - 1) / 2; }
  int64_t window() const { return kernel * group_in(); }
  int64_t all_lines() const { return turns * each; }
  bool thin() const { return in == 1; }

  Plan(int64_t rows_, int64_t places_, const at::Tensor& weight, int64_t stride_, int64_t groups_)
      : rows(rows_),
        places(places_),
        in(weight.size(1) * groups_),
        out_places((places - 1) / stride_ + 1),
        out(weight.size(0)),
        kernel(weight.size(2)),
        stride(stride_),
        groups(groups_) {
    turns = (kernel + stride - 1) / stride;
    lines = out_places + turns - 1;
    while (lines * stride < places + 2 * padding()) ++lines;
    room = lines * stride;
    each = (rows * lines + turns - 1) / turns;
  }
};

// out[g] = windows of in[g] times weight[g]: in [G, places, c] of which window i begins at number
// i * step; weight [G, K, n]; out [G, turns * each, n].
void multiply_windows(const at::Tensor& in, int64_t step, const at::Tensor& weight, int64_t turns,
                      const at::Tensor& out) {
  const int64_t groups = in.size(0), inner = weight.size(1), columns = weight.size(2);
  const int64_t each = out.size(1) / turns;
  if (groups <= turns) {
    for (int64_t g = 0; g < groups; ++g) {
      at::Tensor to = out[g].view({each, turns, columns}).transpose(0, 1);
      at::bmm_out(to, in[g].as_strided({turns, each, inner}, {step, turns * step, 1}),
                  weight[g].expand({turns, inner, columns}));
    }
    return;
  }
  for (int64_t turn = 0; turn < turns; ++turn) {
    at::Tensor to = out.as_strided({groups, each, columns}, {out.stride(0), turns * columns, 1},
                                   out.storage_offset() + turn * columns);
    at::bmm_out(to,
                in.as_strided({groups, each, inner}, {in.stride(0), turns * step, 1},
                              in.storage_offset() + turn * step),
                weight);
  }
}

// a b of [n, …] each, float32 where the type is narrower.
at::Tensor wide_bmm(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_cuda() && a.element_size() < 4) return at::bmm(a, b, at::kFloat);
  return at::bmm(a, b);
}

// Sums over all windows of in[g]: window turned, times its line of `lines` [G, turns * each, n]:
// [G, K, n].
at::Tensor multiply_turned(const at::Tensor& in, int64_t step, int64_t inner,
                           const at::Tensor& lines, int64_t turns) {
  const int64_t groups = in.size(0), columns = lines.size(2), each = lines.size(1) / turns;
  if (groups <= turns) {
    std::vector<at::Tensor> sums;
    for (int64_t g = 0; g < groups; ++g) {
      const at::Tensor windows = in[g].as_strided({turns, inner, each}, {step, 1, turns * step});
      sums.push_back(
          wide_bmm(windows, lines[g].view({each, turns, columns}).transpose(0, 1)).sum(0));
    }
    return at::stack(sums);
  }
  at::Tensor sum;
  for (int64_t turn = 0; turn < turns; ++turn) {
    const at::Tensor part =
        wide_bmm(in.as_strided({groups, inner, each}, {in.stride(0), 1, turns * step},
                               in.storage_offset() + turn * step),
                 lines.as_strided({groups, each, columns}, {lines.stride(0), turns * columns, 1},
                                  lines.storage_offset() + turn * columns));
    sum = sum.defined() ? sum.add_(part) : part;
  }
  return sum;
}

// [G, at least rows * room, c] seen as [rows, count, G, c] from place `first` of each row on.
at::Tensor rows_of(const at::Tensor& flat, int64_t rows, int64_t room, int64_t first,
                   int64_t count) {
  return flat.narrow(1, 0, rows * room)
      .view({flat.size(0), rows, room, flat.size(2)})
      .narrow(2, first, count)
      .permute({1, 2, 0, 3});
}
at::Tensor by_group(const at::Tensor& x, int64_t groups) {
  return x.view({x.size(0), x.size(1), groups, x.size(2) / groups});
}

// The rows with their padding, groups apart: [G, places, C / G].
at::Tensor spread(const at::Tensor& x, const Plan& plan) {
  const int64_t needed = (plan.all_lines() - 1) * plan.stride + plan.kernel;
  at::Tensor flat = at::zeros(
      {plan.groups, std::max(needed, plan.rows * plan.room), plan.group_in()}, x.options());
  rows_of(flat, plan.rows, plan.room, plan.padding(), plan.places).copy_(by_group(x, plan.groups));
  return flat;
}

// A single channel has windows that begin anywhere: they are copied, filled up to a multiple of 8.
at::Tensor cut_windows(const at::Tensor& x, const Plan& plan) {
  const int64_t filled = (plan.kernel + 7) / 8 * 8;
  const int64_t behind = plan.room - plan.padding() - plan.places;
  const at::Tensor padded = at::constant_pad_nd(x.select(2, 0), {plan.padding(), behind});
  at::Tensor windows = at::zeros({plan.rows, plan.out_places, filled}, x.options());
  windows.narrow(2, 0, plan.kernel)
      .copy_(padded.unfold(1, plan.kernel, plan.stride).narrow(1, 0, plan.out_places));
  return windows.view({-1, filled});
}
at::Tensor add_windows(const at::Tensor& windows, const Plan& plan) {
  at::Tensor padded =
      at::zeros({plan.rows, plan.room},
                windows.options().dtype(at::promote_types(windows.scalar_type(), at::kFloat)));
  const at::Tensor by_row = windows.view({plan.rows, plan.out_places, -1});
  const int64_t reach = (plan.out_places - 1) * plan.stride + 1;
  for (int64_t k = 0; k < plan.kernel; ++k)
    padded.slice(1, k, k + reach, plan.stride).add_(by_row.select(2, k));
  return padded.narrow(1, plan.padding(), plan.places).to(windows.scalar_type()).unsqueeze(2);
}
// [filled, out] of [out, 1, k].
at::Tensor thin_weight(const at::Tensor& weight, int64_t filled) {
  return at::constant_pad_nd(weight.squeeze(1), {0, filled - weight.size(2)}).t().contiguous();
}

struct FlatConv : torch::autograd::Function<FlatConv> {
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& given, const at::Tensor& weight,
                            const at::Tensor& bias, int64_t stride, int64_t groups, double slope) {
    const at::Tensor x = given.contiguous();
    const Plan plan(x.size(0), x.size(1), weight, stride, groups);
    at::Tensor out = at::empty({plan.rows, plan.out_places, plan.out}, x.options());
    at::Tensor kept;
    if (plan.thin()) {
      kept = cut_windows(x, plan);
      at::Tensor lines = out.view({-1, plan.out});
      at::addmm_out(lines, bias, kept, thin_weight(weight, kept.size(1)));
    } else {
      kept = spread(x, plan);
      // [G, k, c, n]: as windows lie in memory.
      const at::Tensor turned = weight.view({groups, plan.group_out(), plan.group_in(), -1})
                                    .permute({0, 3, 2, 1})
                                    .reshape({groups, plan.window(), plan.group_out()});
      const at::Tensor lines = at::empty({groups, plan.all_lines(), plan.group_out()}, x.options());
      multiply_windows(kept, stride * plan.group_in(), turned, plan.turns, lines);
      at::Tensor to = by_group(out, groups);
      at::add_out(to, rows_of(lines, plan.rows, plan.lines, 0, plan.out_places),
                  bias.view({groups, -1}));
    }
    if (slope != 1) at::leaky_relu_(out, slope);
    context->save_for_backward({weight.requires_grad() ? kept : at::Tensor(), weight, out});
    context->saved_data["stride"] = stride;
    context->saved_data["groups"] = groups;
    context->saved_data["slope"] = slope;
    context->saved_data["places"] = plan.places;
    return out;
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const Tensors saved = context->get_saved_variables();
    const at::Tensor &kept = saved[0], &weight = saved[1], &out = saved[2];
    const int64_t groups = context->saved_data["groups"].toInt();
    const int64_t stride = context->saved_data["stride"].toInt();
    const Plan plan(out.size(0), context->saved_data["places"].toInt(), weight, stride, groups);
    const double slope = context->saved_data["slope"].toDouble();
    const bool wants_x = context->needs_input_grad(0), learns = context->needs_input_grad(1);
    // The output's gradient, a window's length of nothing before it and behind each row.
    const int64_t before = plan.thin() ? 0 : plan.turns - 1;
    const int64_t line = plan.thin() ? plan.out_places : plan.lines;
    at::Tensor flat = at::zeros(
        {groups, before + (plan.thin() ? plan.rows * line : plan.all_lines()), plan.group_out()},
        out.options());
    const at::Tensor lines = flat.narrow(1, before, flat.size(1) - before);
    at::Tensor to = rows_of(lines, plan.rows, line, 0, plan.out_places);
    const at::Tensor flow = by_group(gradients[0].contiguous(), groups);
    if (slope != 1) {
      at::leaky_relu_backward_out(to, flow, by_group(out, groups), slope, true);
    } else {
      to.copy_(flow);
    }
    Tensors result(6);
    if (plan.thin()) {
      if (wants_x)
        result[0] =
            add_windows(at::mm(flat[0], thin_weight(weight, (plan.kernel + 7) / 8 * 8).t()), plan);
      if (learns) result[1] = at::mm(flat[0].t(), kept).narrow(1, 0, plan.kernel).unsqueeze(1);
    } else {
      if (wants_x) result[0] = of_input(flat, weight, plan);
      if (learns)
        result[1] =
            multiply_turned(kept, stride * plan.group_in(), plan.window(), lines, plan.turns)
                .view({groups, plan.kernel, plan.group_in(), plan.group_out()})
                .permute({0, 3, 2, 1})
                .reshape(weight.sizes())
                .to(weight.scalar_type());
    }
    if (context->needs_input_grad(2))
      result[2] = flat.sum(1, false, at::promote_types(flat.scalar_type(), at::kFloat))
                      .flatten()
                      .to(weight.scalar_type());
    return result;
  }

  // Line u of the input's gradient, `stride` places together, comes from the `turns` lines of the
  // output's gradient that end with u.
  static at::Tensor of_input(const at::Tensor& flat, const at::Tensor& weight, const Plan& plan) {
    const int64_t filled = plan.turns * plan.stride;
    const at::Tensor turned =
        at::constant_pad_nd(weight, {0, filled - plan.kernel})
            .view({plan.groups, plan.group_out(), plan.group_in(), plan.turns, plan.stride})
            .flip(3)
            .permute({0, 3, 1, 4, 2})
            .reshape({plan.groups, plan.turns * plan.group_out(), plan.stride * plan.group_in()});
    const at::Tensor lines =
        at::empty({plan.groups, plan.all_lines(), plan.stride * plan.group_in()}, flat.options());
    multiply_windows(flat, plan.group_out(), turned, plan.turns, lines);
    const at::Tensor places =
        lines.view({plan.groups, plan.all_lines() * plan.stride, plan.group_in()});
    return rows_of(places, plan.rows, plan.room, plan.padding(), plan.places)
        .reshape({plan.rows, plan.places, plan.in});
  }
};

// A product takes as long for fewer columns as for this many.
constexpr int64_t full_columns = 64;

// `together` groups as one, with zeros between them: [out, together * c, k].
at::Tensor join_groups(const at::Tensor& weight, int64_t groups, int64_t together) {
  const int64_t out = weight.size(0), in = weight.size(1), kernel = weight.size(2);
  const at::Tensor apart =
      weight.view({groups / together, together, out / groups, in, kernel}).permute({0, 2, 3, 4, 1});
  return at::diag_embed(apart, 0, 1, 3).reshape({out, together * in, kernel});
}

}  // namespace

at::Tensor flat_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const FlatConvOptions& options) {
  if (weight.size(2) % 2 == 0 || weight.size(2) < options.stride ||
      weight.size(1) * options.groups != x.size(2) || weight.size(0) % options.groups != 0 ||
      bias.numel() != weight.size(0)) {
    throw Error(ErrorKind::internal,
                fmt::format("a convolution of {} channels in {} groups cannot have a weight of "
                            "[{}, {}, {}] with stride {}",
                            x.size(-1), options.groups, weight.size(0), weight.size(1),
                            weight.size(2), options.stride));
  }
  int64_t together = 1;
  while (options.groups % (2 * together) == 0 &&
         weight.size(0) / options.groups * together < full_columns)
    together *= 2;
  return FlatConv::apply(x, together == 1 ? weight : join_groups(weight, options.groups, together),
                         bias, options.stride, options.groups / together, options.slope);
}

}  // namespace tandem
