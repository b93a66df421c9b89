// Four products of f16, or of elements with W bits of exponent and F of fraction as bf16, and an f32 addend, added as one
// sum that is cut below the largest term, in two stages: aligned terms in the registers between them, then a tree of
// adders. Exponents are 256 more than they say; that of zero is -131.
module dot4 #(parameter W = 5, F = 10, N = W + F + 1) (
  input clk,
  input  [4*N-1:0] a, b,
  input  [31:0] c,
  output reg [31:0] d
);
  // stage 1: products, the largest exponent by a tournament, and the terms aligned to it
  wire [9:0] exponent [0:4];
  wire [24:0] term [0:4];
  wire [4:0] sign;
  wire [4:0] nan, positive, negative;
  genvar k;
  generate
    for (k = 0; k < 4; k = k + 1) begin : product
      wire [N-1:0] x = a[N*k +: N], y = b[N*k +: N];
      wire hidden_x = |x[N-2:F], hidden_y = |y[N-2:F];
      wire [F:0] significand_x = {hidden_x, x[F-1:0]}, significand_y = {hidden_y, y[F-1:0]};
      wire [2*F+1:0] significand = significand_x * significand_y;
      wire top_x = &x[N-2:F], top_y = &y[N-2:F], zero_x = !x[N-2:0], zero_y = !y[N-2:0];
      wire infinite = top_x & !x[F-1:0] & !zero_y | top_y & !y[F-1:0] & !zero_x;
      wire [9:0] both = {2'b0, x[N-2:F]} + {2'b0, y[N-2:F]} + !hidden_x + !hidden_y;
      assign sign[k] = x[N-1] ^ y[N-1];
      assign term[k] = {significand, {23-2*F{1'b0}}};
      assign exponent[k] = significand == 0 ? 125 : both + 258 - (1 << W);
      assign nan[k] = top_x & |x[F-1:0] | top_y & |y[F-1:0] | top_x & zero_y | top_y & zero_x;
      assign positive[k] = infinite & !sign[k];
      assign negative[k] = infinite & sign[k];
    end
  endgenerate
  wire hidden_c = |c[30:23];
  assign sign[4] = c[31];
  assign term[4] = {1'b0, hidden_c, c[22:0]};
  assign exponent[4] = c[30:0] == 0 ? 125 : (c[30:23] | {7'b0, !hidden_c}) + 10'd129;
  assign nan[4] = &c[30:23] & |c[22:0];
  assign positive[4] = &c[30:23] & !c[22:0] & !c[31];
  assign negative[4] = &c[30:23] & !c[22:0] & c[31];

  function [9:0] larger(input [9:0] x, y);
    reg [10:0] less;
    begin
      less = {1'b0, x} - {1'b0, y};
      larger = less[10] ? y : x;
    end
  endfunction
  wire [9:0] largest = larger(larger(larger(exponent[4], exponent[3]), exponent[2]), larger(exponent[1], exponent[0]));

  reg [28:0] aligned [0:4];
  reg [4:0] minus;
  reg [9:0] scale;
  reg invalid, up, down;
  integer i;
  always @(posedge clk) begin
    for (i = 0; i < 5; i = i + 1) aligned[i] <= {29{sign[i]}} ^ {4'b0, term[i] >> (largest - exponent[i])};
    minus <= sign;
    scale <= largest;
    invalid <= |nan | |positive & |negative;
    up <= |positive;
    down <= |negative;
  end

  // stage 2: a tree of adders for five ones' complements, whose carries in make them negative numbers
  wire [28:0] low = aligned[0] + aligned[1] + minus[0], high = aligned[2] + aligned[3] + minus[1];
  wire [28:0] rest = aligned[4] + {28'b0, minus[2]} + {28'b0, minus[3]} + {28'b0, minus[4]};
  wire [28:0] sum = low + (high + rest);
  wire [27:0] size = sum[28] ? ~sum[27:0] + 1'b1 : sum[27:0];

  // normalised as far as exponents reach, or moved to where they do, and cut
  function [4:0] zeros(input [27:0] word);
    begin
      zeros = 0;
      if (!word[27:12]) begin zeros = zeros | 16; word = word << 16; end
      if (!word[27:20]) begin zeros = zeros | 8; word = word << 8; end
      if (!word[27:24]) begin zeros = zeros | 4; word = word << 4; end
      if (!word[27:26]) begin zeros = zeros | 2; word = word << 2; end
      if (!word[27]) zeros = zeros | 1;
    end
  endfunction
  wire tiny = scale < 126;
  wire [9:0] room = tiny ? 0 : scale - 126;
  wire [9:0] places = zeros(size) < room ? zeros(size) : room;
  wire [27:0] left = tiny ? size >> (126 - scale) : size << places;
  wire [9:0] field = left[27] ? room - places + 1 : 0;
  always @(posedge clk)
    d <= invalid ? 32'h7fffffff
       : up ? 32'h7f800000
       : down ? 32'hff800000
       : field >= 255 ? {sum[28], 31'h7f800000}
       : {sum[28] & |{field, left[26:4]}, field[7:0], left[26:4]};
endmodule
