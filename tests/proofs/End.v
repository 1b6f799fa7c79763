(** From the plan to the noise: what [derive] says of a plan is what the release may rely on. *)
Require Import List Permutation ZArith Lia Arith.
From Dpsql Require Import Near Ops Plan Sound Bounds Release Mech.
Import ListNotations.

Section End.
Variables tw aw : nat -> nat.
Variable policy : nat -> protection.
Variable promise : nat -> list (list nat * nat).
Variable I : interp.
Variables D U D' : nat -> list row.
Variable u : Z.
Hypothesis N : neighbours policy D U D' u.
Variable p : plan.
Hypothesis C : promised promise D.
Hypothesis C' : promised promise D'.
Notation out := (eval tw aw I).
Variable K : Type.
Variable eqk : forall x y : K, {x = y} + {x <> y}.
Variable key : row -> K.
Variable f : row -> Z.                (* the clipped integer of a row; 1 for COUNT *)
Variable B : Z.
Hypothesis HB : (0 <= B)%Z.
Hypothesis Hf : forall x, (Z.abs (f x) <= B)%Z.
Variable gs : list K.
Hypothesis once : NoDup gs.
Open Scope Z_scope.

(** Row units, and id units that are counted by rows. *)
Theorem release_of_rows k : derive tw aw policy promise p = Some (Rows k) ->
  zsum (fun g => Z.abs (measured eqk key f (out D' p) g - measured eqk key f (out D p) g)) gs <= B * Z.of_nat k.
Proof.
  intros E. pose proof (derive_sound tw aw policy promise I D U D' u p N C C' _ E) as H. simpl in H.
  now apply measured_l1.
Qed.

(** Id units under the limit of C rows. *)
Variables F Cap : Z.
Hypothesis HF : 0 <= F. Hypothesis HC : 0 < Cap.
Fixpoint table (hs : list K) (zs : list Z) (g : K) : Z := match hs, zs with
  | h :: hs, z :: zs => if eqk h g then z else table hs zs g | _, _ => 0 end.
Definition weights (b : list row) : K -> Z := table gs (map (weighed eqk key f F Cap gs b) gs).
Lemma table_map (w : K -> Z) hs g : In g hs -> table hs (map w hs) g = w g.
Proof. induction hs as [|h0 hs IH]; simpl; [tauto |]. intros H. destruct (eqk h0 g); [now subst | apply IH; tauto]. Qed.
Lemma weights_perm b b' : Permutation b b' -> weights b = weights b'.
Proof. intros P. unfold weights. f_equal. apply map_ext. intros g. now apply weighed_perm. Qed.
Lemma weights_most b : zsum (fun g => Z.abs (weights b g)) gs <= F * (Cap * B).
Proof.
  rewrite (zsum_ext _ (fun g => Z.abs (weighed eqk key f F Cap gs b g))).
  - now apply weighed_l1.
  - intros g Hg. unfold weights. now rewrite table_map.
Qed.

Theorem release_of_ids cs c : derive tw aw policy promise p = Some (Ids cs) -> In c cs ->
  zsum (fun g => Z.abs (released (at_ c) weights (out D' p) g - released (at_ c) weights (out D p) g)) gs <= F * (Cap * B).
Proof.
  intros E Hc. pose proof (derive_sound tw aw policy promise I D U D' u p N C C' _ E) as H. simpl in H. destruct H as (P & H1 & H2).
  apply (released_l1 (at_ c) weights weights_perm gs _ weights_most u (out D p) (out U p) (out D' p)); auto.
  apply Z.mul_nonneg_nonneg; auto. apply Z.mul_nonneg_nonneg; lia.
Qed.
End End.

(** Replaced ids: one unit's rows go, another's come. Counted by rows that is 2k; the weighted vector moves by twice as much. *)
Theorem replaced_ids tw aw policy promise I C U1 D1 u1 U2 D2 u2 p k :
  neighbours policy C U1 D1 u1 -> neighbours policy C U2 D2 u2 ->
  promised promise C -> promised promise D1 -> promised promise D2 -> derive tw aw policy promise p = Some (Rows k) ->
  near (2 * k) (eval tw aw I D1 p) (eval tw aw I D2 p).
Proof.
  intros N1 N2 HC H1 H2 E. replace (2 * k)%nat with (k + k)%nat by lia. apply near_trans with (eval tw aw I C p).
  - apply near_sym. exact (derive_sound tw aw policy promise I C U1 D1 u1 p N1 HC H1 _ E).
  - exact (derive_sound tw aw policy promise I C U2 D2 u2 p N2 HC H2 _ E).
Qed.

(** The vectors, with noise: no output is more than q^-Δ times as likely. *)
Section Noise.
Variable W : Type.
Variables (one : W) (mul : W -> W -> W) (le : W -> W -> Prop).
Hypothesis mul_one : forall x, mul one x = x.
Hypothesis mul_assoc : forall x y z, mul x (mul y z) = mul (mul x y) z.
Hypothesis le_refl : forall x, le x x.
Hypothesis le_mul : forall x y x' y', le x x' -> le y y' -> le (mul x y) (mul x' y').
Variable q : W.
Hypothesis q_less : le q one.
Theorem noisy {K} (v w : K -> Z) (gs : list K) (delta : nat) (o : list Z) : length o = length gs ->
  (zsum (fun g => Z.abs (w g - v g)) gs <= Z.of_nat delta)%Z ->
  le (mul (pow W one mul q delta) (laplace W one mul q (map w gs) o)) (laplace W one mul q (map v gs) o).
Proof.
  intros Ho H. apply (laplace_ratio W one mul le mul_one mul_assoc le_refl le_mul q q_less); rewrite ?map_length; auto.
  apply Nat2Z.inj_le. etransitivity; [| exact H]. clear. induction gs as [|g gs IH]; cbn; [lia |].
  rewrite Nat2Z.inj_add, Zabs2Nat.id_abs. lia.
Qed.
End Noise.
