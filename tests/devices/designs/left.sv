// A fused multiply-add whose addend alone moves: it begins left of the product and is shifted right. Partial products and
// the addend are one carry-save sum. W bits of exponent, F of fraction.
module left #(parameter W = 5, parameter F = 10) (
  input  [W+F:0] a, b, c,
  output [W+F:0] d
);
  localparam P = F + 1;          // bits of a significand
  localparam N = 3 * P + 5;      // bits of the window: the addend, three between, the product, two more
  localparam [W-1:0] ONES = {W{1'b1}};
  localparam BIAS = (1 << (W - 1)) - 1;
  localparam E = W + 3;          // bits of signed exponents
  localparam L = $clog2(N + 3);

  function [L-1:0] zeros(input [N+1:0] word);
    integer k;
    begin
      zeros = N + 2;
      for (k = 0; k <= N + 1; k = k + 1) if (word[k]) zeros = N + 1 - k;
    end
  endfunction

  // operands
  wire sa = a[W+F], sb = b[W+F], sc = c[W+F];
  wire [W-1:0] xa = a[W+F-1:F], xb = b[W+F-1:F], xc = c[W+F-1:F];
  wire na = |xa, nb = |xb, nc = |xc;
  wire [F:0] ma = {na, a[F-1:0]}, mb = {nb, b[F-1:0]}, mc = {nc, c[F-1:0]};
  wire nan_a = &xa && |a[F-1:0], inf_a = &xa && !a[F-1:0], zero_a = !xa && !a[F-1:0];
  wire nan_b = &xb && |b[F-1:0], inf_b = &xb && !b[F-1:0], zero_b = !xb && !b[F-1:0];
  wire nan_c = &xc && |c[F-1:0], inf_c = &xc && !c[F-1:0];
  wire sp = sa ^ sb, subtract = sp ^ sc;

  // the addend: its field less that of the window's first place is how far it moves
  wire signed [E-1:0] field_c = xc + !nc, field_p = xa + xb + !na + !nb - BIAS + P + 4;
  wire signed [E-1:0] far = field_p - field_c;
  wire above = far < 0 || zero_a || zero_b;  // of the product no more is seen than whether it is there
  wire [E-1:0] moved = above ? 0 : far > N ? N : far;
  wire [2*N-1:0] shifted = {mc, {(2*N-P){1'b0}}} >> moved;
  wire [N:0] addend = {shifted[2*N-1:N], |shifted[N-1:0]};
  wire signed [E-1:0] top = above ? field_c : field_p;

  // carry-save: each row of partial products joins the sum and the carries so far
  wire [N+1:0] sums [0:P], carries [0:P];
  assign sums[0] = {1'b0, addend} ^ {(N+2){subtract}};
  assign carries[0] = {{(N+1){1'b0}}, subtract};
  genvar i;
  generate
    for (i = 0; i < P; i = i + 1) begin : row
      wire [N+1:0] part = mb[i] ? {{(N+2-P){1'b0}}, ma} << (i + 3) : 0;
      wire [N+1:0] most = sums[i] & carries[i] | sums[i] & part | carries[i] & part;
      assign sums[i+1] = sums[i] ^ carries[i] ^ part;
      assign carries[i+1] = {most[N:0], 1'b0};
    end
  endgenerate
  wire [N+1:0] total = sums[P] + carries[P];
  wire negative = total[N+1];
  wire [N+1:0] size = negative ? -total : total;

  // normalised as far as exponents reach, then to the right of the smallest one
  wire signed [E-1:0] room = top;
  wire [L-1:0] first = zeros({size[N:0], 1'b0});
  wire [E-1:0] places = room < 1 ? 0 : first > room - 1 ? room - 1 : first;
  wire [N:0] normal = size[N:0] << places;
  wire [E-1:0] below = room < 1 ? 1 - room : 0;
  wire [2*N+1:0] right = {normal, {(N+1){1'b0}}} >> (below > N ? N : below);
  wire [N:0] sum = {right[2*N+1:N+2], |right[N+1:0]};
  wire [E-1:0] field = sum[N] ? room + below - places : 0;

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
