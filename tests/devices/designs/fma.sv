// A fused multiply-add with an aligner for the product and one for the addend, of which one or the other moves; the
// leading zeros of their sum are anticipated from the two summands. W bits of exponent, F of fraction. FIRST = 1: factors
// lose their leading zeros before they are multiplied.
module fma #(parameter W = 5, parameter F = 10, parameter FIRST = 0) (
  input  [W+F:0] a, b, c,
  output [W+F:0] d
);
  localparam P = F + 1;          // bits of a significand
  localparam N = 2 * P + 3;      // bits of a summand, three of them below
  localparam [W-1:0] ONES = {W{1'b1}};
  localparam BIAS = (1 << (W - 1)) - 1;
  localparam E = W + 3;          // bits of signed exponents
  localparam L = $clog2(N + 2);

  function [L-1:0] zeros(input [N:0] word);
    integer k;
    begin
      zeros = N + 1;
      for (k = 0; k <= N; k = k + 1) if (word[k]) zeros = N - k;
    end
  endfunction

  // operands
  wire sa = a[W+F], sb = b[W+F], sc = c[W+F];
  wire [W-1:0] xa = a[W+F-1:F], xb = b[W+F-1:F], xc = c[W+F-1:F];
  wire na = |xa, nb = |xb, nc = |xc;
  wire [F:0] ma = {na, a[F-1:0]}, mb = {nb, b[F-1:0]}, mc = {nc, c[F-1:0]};
  wire nan_a = &xa && |a[F-1:0], inf_a = &xa && !a[F-1:0], zero_a = !xa && !a[F-1:0];
  wire nan_b = &xb && |b[F-1:0], inf_b = &xb && !b[F-1:0], zero_b = !xb && !b[F-1:0];
  wire nan_c = &xc && |c[F-1:0], inf_c = &xc && !c[F-1:0], zero_c = !xc && !c[F-1:0];
  wire sp = sa ^ sb, subtract = sp ^ sc;

  // the product and the addend with their first ones at the left; exponents are fields of d
  wire [L-1:0] zeros_a = FIRST ? zeros({ma, {(N+1-P){1'b0}}}) : 0, zeros_b = FIRST ? zeros({mb, {(N+1-P){1'b0}}}) : 0;
  wire [F:0] first_a = ma << zeros_a, first_b = mb << zeros_b;
  wire [2*P-1:0] product = first_a * first_b;
  wire zero_p = zero_a | zero_b;
  wire [L-1:0] zeros_p = zeros({product, {(N+1-2*P){1'b0}}}), zeros_c = zeros({mc, {(N+1-P){1'b0}}});
  wire [2*P-1:0] left_p = product << zeros_p;
  wire [F:0] left_c = mc << zeros_c;
  wire [E-1:0] field_p = xa + xb + !na + !nb - BIAS + 1 - zeros_a - zeros_b - zeros_p,
               field_c = xc + !nc - zeros_c;
  wire [E-1:0] apart = field_p - field_c;
  wire product_larger = zero_c | !zero_p & !apart[E-1];
  wire [E-1:0] away_p = product_larger ? 0 : -apart, away_c = product_larger ? apart : 0;
  wire [E-1:0] top = product_larger ? field_p : field_c;
  wire [2*N-1:0] moved_p = {left_p, {(2*N-2*P){1'b0}}} >> (away_p > N ? N : away_p);
  wire [2*N-1:0] moved_c = {left_c, {(2*N-P){1'b0}}} >> (away_c > N ? N : away_c);
  wire [N-1:0] aligned_p = {moved_p[2*N-1:N+1], |moved_p[N:0]}, aligned_c = {moved_c[2*N-1:N+1], |moved_c[N:0]};

  // the sum: one more bit for a carry, one for the sign
  wire [N+1:0] x = {2'b0, aligned_p}, y = {2'b0, aligned_c} ^ {(N+2){subtract}};
  wire [N+1:0] total = x + y + subtract;
  wire negative = total[N+1];
  wire [N:0] size = negative ? ~total[N:0] + 1'b1 : total[N:0];

  // where its first one is, at the first place that is set in f or one below
  wire [N:0] t = x[N:0] ^ y[N:0], g = x[N:0] & y[N:0], z = ~(x[N:0] | y[N:0]);
  wire [N:0] t1 = {subtract, t[N:1]}, g0 = {g[N-1:0], subtract}, z0 = {z[N-1:0], !subtract};
  wire [N:0] f = t1 & (g & ~z0 | z & ~g0) | ~t1 & (z & ~z0 | g & ~g0);
  wire [L-1:0] guess = zeros(f);
  wire signed [E-1:0] room = top;  // places before the smallest exponent
  wire [E-1:0] places = room < 1 ? 0 : guess > room ? room : guess;
  wire [N:0] near = size << places;
  wire again = !near[N] && $signed(places) < room;
  wire [N:0] left = again ? near << 1 : near;
  wire [E-1:0] below = room < 1 ? 1 - top - 1 : 0;  // of a product below the smallest exponent
  wire [2*N:0] right = {left, {N{1'b0}}} >> (below > N ? N : below);
  wire [N:0] sum = {right[2*N:N+1], |right[N:0]};
  wire [E-1:0] field = sum[N] ? top + 1 - places - again + below : 0;

  // rounding to nearest, ties to even
  wire [F:0] kept = sum[N:N-F];
  wire up = sum[N-P] & (kept[0] | |sum[N-P-1:0]);
  wire [W+F+2:0] rounded = {field, kept[F-1:0]} + up;
  wire infinite = rounded[W+F+2:F] >= {3'b0, ONES};
  wire sign = !size ? sp & sc : sp ^ negative;

  wire invalid = nan_a | nan_b | nan_c | inf_a & zero_b | inf_b & zero_a | (inf_a | inf_b) & inf_c & subtract;
  assign d = invalid ? {1'b0, ONES, 1'b1, {(F-1){1'b0}}}
           : inf_a | inf_b ? {sp, ONES, {F{1'b0}}}
           : inf_c ? {sc, ONES, {F{1'b0}}}
           : infinite ? {sign, ONES, {F{1'b0}}}
           : {sign, rounded[W+F-1:0]};
endmodule
